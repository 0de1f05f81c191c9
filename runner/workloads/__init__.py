"""Models and functions to measure, and how each is built offline, with random weights."""
