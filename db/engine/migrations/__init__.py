"""The schema's history. Revisions are numbered, so that "older" and "newer" need no graph."""

HEAD = "0024"
VERSION_TABLE = "compilewatch_schema"
