"""The page Trial."""
