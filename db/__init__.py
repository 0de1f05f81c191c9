"""What is stored and what follows from it: records, tables, queries, metrics and verdicts."""
