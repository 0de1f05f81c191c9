"""The one way to a verdict: what is read for it, and what a machine can show."""
