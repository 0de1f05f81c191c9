"""Opening databases: sessions, drivers, backup, migrations."""
