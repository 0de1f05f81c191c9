"""The schema's history. Revisions are numbered, so that "older" and "newer" need no graph."""

HEAD = "0032"
OLDEST = "0032"
"""The first revision that is left: those before it were made one before the first release."""
LAST_WITH_OLDER = "978766465463"
"""The last commit that upgrades every older database, to `OLDEST`."""
VERSION_TABLE = "compilewatch_schema"
