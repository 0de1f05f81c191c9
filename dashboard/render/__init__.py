"""How pages are drawn."""
