"""List the workers of a fleet, and the launches that bring them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"


def upgrade() -> None:
    moment = sa.DateTime(timezone=True)
    op.create_table(
        "fleet_worker",
        sa.Column("owner", sa.String(), primary_key=True),
        sa.Column("queue", sa.String(), nullable=False),
        sa.Column("host", sa.String(), nullable=False),
        sa.Column("served", sa.String(), nullable=False),
        sa.Column("started_at", moment, nullable=False),
        sa.Column("seen_at", moment, nullable=False),
        sa.Column("stopped_at", moment, nullable=True),
        sa.Column("measured", sa.BigInteger(), nullable=False),
    )
    op.create_table(
        "fleet_launch",
        sa.Column("launch_id", sa.String(), primary_key=True),
        sa.Column("queue", sa.String(), nullable=False),
        sa.Column("host", sa.String(), nullable=False),
        sa.Column("launched_at", moment, nullable=False),
        sa.Column("worker_due_at", moment, nullable=False),
        sa.Column("ended_at", moment, nullable=True),
        sa.Column("exit_code", sa.Integer(), nullable=True),
        sa.Column("output", sa.String(), nullable=False),
        sa.Column("worker", sa.String(), nullable=True),
        sa.Column("worker_at", moment, nullable=True),
    )
    op.create_index(op.f("ix_fleet_launch_queue"), "fleet_launch", ["queue"])
