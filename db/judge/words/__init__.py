"""Verdicts in words, the same from every door."""
