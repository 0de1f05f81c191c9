"""Which release, and which package of an upgrade, changed a case."""
