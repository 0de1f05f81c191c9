"""The one judge: `decide` decides, `compare` words it, `history` follows one series."""
