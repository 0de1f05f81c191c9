"""The tab Break-even of Models."""
