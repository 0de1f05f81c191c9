"""The tab Sizes of Models."""
