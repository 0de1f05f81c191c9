"""Which package of an upgrade changed a case."""
