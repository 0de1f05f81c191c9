"""The tab Machines of Models."""
