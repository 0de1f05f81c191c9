"""The page Reports."""
