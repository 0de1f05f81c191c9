"""Two sides, case by case."""
