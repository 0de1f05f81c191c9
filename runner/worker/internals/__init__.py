"""The one door to torch's private interfaces. Each has a fallback, since they move between releases 2.6 to
2.15.

A function here returns None (or nothing) where its interface is absent; no caller may take that for zero.
"""
