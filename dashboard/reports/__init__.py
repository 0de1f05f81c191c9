"""Frozen reports: content made once from a view or a comparison, pages drawn from that content alone."""
