"""Trials on disk, on their way to the database."""
