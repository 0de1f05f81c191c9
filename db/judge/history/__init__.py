"""One series through time."""
