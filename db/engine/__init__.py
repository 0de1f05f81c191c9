"""The tables, opening databases, and their migrations."""
