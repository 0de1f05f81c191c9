"""Times of a step: the clock, sampling, what the host did meanwhile."""
