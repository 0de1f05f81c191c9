"""Which release changed a case: `compilewatch bisect`."""
