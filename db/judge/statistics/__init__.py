"""Is a change real? Contrasts of two sides, their noise, and the tests by which `db.judge.decide` decides."""
