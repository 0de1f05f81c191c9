"""The page Regressions."""
