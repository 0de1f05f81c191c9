"""Results of other tools in, results for other tools out: one file per foreign format."""
