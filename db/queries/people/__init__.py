"""What people did: filed, signed, shared, noted."""
