"""From a suite to the trials of a run."""
