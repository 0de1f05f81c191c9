"""What people did: filed, shared, noted."""
