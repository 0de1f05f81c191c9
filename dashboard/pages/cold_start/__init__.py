"""The page Cold start."""
