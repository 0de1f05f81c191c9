"""Models, of all a list and of one its history."""
