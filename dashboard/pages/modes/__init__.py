"""The page Modes."""
