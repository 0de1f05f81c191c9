"""Which release changed a case."""
