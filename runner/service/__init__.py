"""The service that measures on schedule."""
