"""A step: what it is asked for, on which host and torch, how it is built, put back, watched."""
