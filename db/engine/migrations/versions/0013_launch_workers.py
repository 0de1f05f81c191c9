"""List the workers of a fleet, and the launches that bring them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    moment = sa.DateTime(timezone=True)
    op.create_table(
        "fleet_worker",
        sa.Column("owner", sa.String(), nullable=False),
        sa.Column("queue", sa.String(), nullable=False),
        sa.Column("host", sa.String(), nullable=False),
        sa.Column("served", sa.String(), nullable=False),
        sa.Column("started_at", moment, nullable=False),
        sa.Column("seen_at", moment, nullable=False),
        sa.Column("stopped_at", moment, nullable=True),
        sa.Column("measured", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("owner", name=op.f("pk_fleet_worker")),
    )
    op.create_table(
        "fleet_launch",
        sa.Column("launch_id", sa.String(), nullable=False),
        sa.Column("queue", sa.String(), nullable=False),
        sa.Column("host", sa.String(), nullable=False),
        sa.Column("launched_at", moment, nullable=False),
        sa.Column("worker_due_at", moment, nullable=False),
        sa.Column("ended_at", moment, nullable=True),
        sa.Column("exit_code", sa.Integer(), nullable=True),
        sa.Column("output", sa.String(), nullable=False),
        sa.Column("worker", sa.String(), nullable=True),
        sa.Column("worker_at", moment, nullable=True),
        sa.PrimaryKeyConstraint("launch_id", name=op.f("pk_fleet_launch")),
    )
    op.create_index(op.f("ix_fleet_launch_queue"), "fleet_launch", ["queue"])


def downgrade() -> None:
    op.drop_index(op.f("ix_fleet_launch_queue"), table_name="fleet_launch")
    op.drop_table("fleet_launch")
    op.drop_table("fleet_worker")
