"""How it is measured: the command line, the supervisor and the measured process."""
