"""What is measured and derived: one row of a table for each figure."""
