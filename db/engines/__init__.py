"""What differs between SQLite and PostgreSQL before a statement is sent: connecting and its troubles."""
