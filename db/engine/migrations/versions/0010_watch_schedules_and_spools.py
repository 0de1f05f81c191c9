"""Watch schedules that produce nothing, and what waits on the disks of hosts."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    moment = sa.DateTime(timezone=True)
    op.create_table(
        "schedule_watch",
        sa.Column("schedule", sa.String(), nullable=False),
        sa.Column("last_result_at", moment, nullable=True),
        sa.Column("due_at", moment, nullable=True),
        sa.Column("told_due_at", moment, nullable=True),
        sa.ForeignKeyConstraint(
            ["schedule"], ["schedule.name"], name=op.f("fk_schedule_watch_schedule_schedule")
        ),
        sa.PrimaryKeyConstraint("schedule", name=op.f("pk_schedule_watch")),
    )
    op.create_table(
        "host_health",
        sa.Column("host", sa.String(), nullable=False),
        sa.Column("seen_at", moment, nullable=False),
        sa.Column("spool_trials", sa.BigInteger(), nullable=False),
        sa.Column("spool_bytes", sa.BigInteger(), nullable=False),
        sa.Column("database_errors", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("host", name=op.f("pk_host_health")),
    )


def downgrade() -> None:
    op.drop_table("host_health")
    op.drop_table("schedule_watch")
