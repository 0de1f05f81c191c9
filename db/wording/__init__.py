"""How numbers and verdicts are written, once for the command line, pages, API and reports."""
