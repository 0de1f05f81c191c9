"""The page Evidence."""
