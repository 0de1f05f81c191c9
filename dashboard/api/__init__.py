"""What programs read over HTTP: the numbers of the pages and commands as JSON and CSV, badges, monitoring."""
