"""Call the format of every record `compilewatch.trial/1`: the three of before the first release are one."""

from __future__ import annotations

from alembic import op

revision = "0026"
down_revision = "0025"


def upgrade() -> None:
    op.execute("UPDATE trial SET record_version = 1 WHERE record_version <> 1")
