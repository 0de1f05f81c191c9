"""The page Upgrade."""
