"""The page Break even."""
