"""What follows from a regression: confirmed, recorded, told."""
