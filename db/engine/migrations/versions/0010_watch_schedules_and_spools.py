"""Watch schedules that produce nothing, and what waits on the disks of hosts."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    moment = sa.DateTime(timezone=True)
    op.create_table(
        "schedule_watch",
        sa.Column("schedule", sa.String(), sa.ForeignKey("schedule.name"), primary_key=True),
        sa.Column("last_result_at", moment, nullable=True),
        sa.Column("due_at", moment, nullable=True),
        sa.Column("told_due_at", moment, nullable=True),
    )
    op.create_table(
        "host_health",
        sa.Column("host", sa.String(), primary_key=True),
        sa.Column("seen_at", moment, nullable=False),
        sa.Column("spool_trials", sa.BigInteger(), nullable=False),
        sa.Column("spool_bytes", sa.BigInteger(), nullable=False),
        sa.Column("database_errors", sa.BigInteger(), nullable=False),
    )
