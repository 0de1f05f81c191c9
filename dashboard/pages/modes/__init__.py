"""The tab Modes of Models."""
