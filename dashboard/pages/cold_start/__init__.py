"""The tab Cold start of Models."""
