"""Every write, by subject."""
