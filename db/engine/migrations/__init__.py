"""The schema's history, which Alembic runs; `db.engine.schema` says which revisions there are."""
