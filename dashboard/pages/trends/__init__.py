"""The page Trends."""
