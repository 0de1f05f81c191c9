"""Other tools' files, read."""
