"""What is stored and what follows from it: records, tables, queries, metrics and verdicts."""

__version__ = "0.1.0"
