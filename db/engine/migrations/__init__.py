"""The schema's history. Revisions are numbered, so that "older" and "newer" need no graph."""

HEAD = "0025"
VERSION_TABLE = "compilewatch_schema"
