"""Times of a step: the clock, sampling, what was seen meanwhile, energy."""
