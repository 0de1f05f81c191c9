"""Commands that measure, or have measured."""
