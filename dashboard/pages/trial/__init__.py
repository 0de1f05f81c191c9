"""The tab Trials of Models, and one trial."""
