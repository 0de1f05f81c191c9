"""Commands on what is stored: shown, moved, served, cleaned."""
