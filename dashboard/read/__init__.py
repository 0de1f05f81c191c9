"""What pages read, and its caches."""
