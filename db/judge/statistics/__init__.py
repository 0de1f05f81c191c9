"""Is a change real? Contrasts of two sides, their noise, and the tests that decide."""
