"""The measured process, from outside."""
