"""A step: what it is asked for, how it is built, put back, watched."""
