"""Schedule runs, claim their firings, and queue what is to be measured."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "schedule",
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("spec", sa.JSON(), nullable=False),
        sa.Column("from_config", sa.Boolean(), nullable=False),
        sa.Column("paused", sa.Boolean(), nullable=False),
        sa.Column("active_since", sa.DateTime(timezone=True), nullable=False),
        sa.Column("next_run_at", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_schedule")),
    )
    op.create_table(
        "run_request",
        sa.Column("request_id", sa.String(), nullable=False),
        sa.Column("kind", sa.String(length=32), nullable=False),
        sa.Column("priority", sa.BigInteger(), nullable=False),
        sa.Column("spec", sa.JSON(), nullable=False),
        sa.Column("asked_by", sa.String(), nullable=False),
        sa.Column("asked_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("state", sa.String(length=32), nullable=False),
        sa.Column("cancel_asked", sa.Boolean(), nullable=False),
        sa.Column("owner", sa.String(), nullable=True),
        sa.Column("attempts", sa.BigInteger(), nullable=False),
        sa.Column("beat", sa.BigInteger(), nullable=False),
        sa.Column("run_ids", sa.JSON(), nullable=False),
        sa.Column("history", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("request_id", name=op.f("pk_run_request")),
    )
    op.create_index(
        op.f("ix_run_request_state_priority_asked_at"), "run_request", ["state", "priority", "asked_at"]
    )
    op.create_table(
        "firing",
        sa.Column("schedule", sa.String(), nullable=False),
        sa.Column("fire_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("owner", sa.String(), nullable=False),
        sa.Column("claimed_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("outcome", sa.String(length=32), nullable=False),
        sa.Column("firings", sa.BigInteger(), nullable=False),
        sa.Column("request_id", sa.String(), nullable=True),
        sa.ForeignKeyConstraint(["schedule"], ["schedule.name"], name=op.f("fk_firing_schedule_schedule")),
        sa.ForeignKeyConstraint(
            ["request_id"], ["run_request.request_id"], name=op.f("fk_firing_request_id_run_request")
        ),
        sa.PrimaryKeyConstraint("schedule", "fire_at", name=op.f("pk_firing")),
    )


def downgrade() -> None:
    op.drop_table("firing")
    op.drop_table("run_request")
    op.drop_table("schedule")
