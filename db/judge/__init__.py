"""The one judge."""
