"""A link and the state of a page."""
