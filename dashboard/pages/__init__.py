"""One folder for each page: what it says, what it draws."""
