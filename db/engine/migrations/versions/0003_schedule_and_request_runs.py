"""Schedule runs, claim their firings, and queue what is to be measured."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.create_table(
        "schedule",
        sa.Column("name", sa.String(), primary_key=True),
        sa.Column("spec", sa.JSON(), nullable=False),
        sa.Column("from_config", sa.Boolean(), nullable=False),
        sa.Column("paused", sa.Boolean(), nullable=False),
        sa.Column("active_since", sa.DateTime(timezone=True), nullable=False),
        sa.Column("next_run_at", sa.DateTime(timezone=True), nullable=True),
    )
    op.create_table(
        "run_request",
        sa.Column("request_id", sa.String(), primary_key=True),
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
    )
    op.create_index(
        op.f("ix_run_request_state_priority_asked_at"), "run_request", ["state", "priority", "asked_at"]
    )
    op.create_table(
        "firing",
        sa.Column("schedule", sa.String(), sa.ForeignKey("schedule.name"), primary_key=True),
        sa.Column("fire_at", sa.DateTime(timezone=True), primary_key=True),
        sa.Column("owner", sa.String(), nullable=False),
        sa.Column("claimed_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("outcome", sa.String(length=32), nullable=False),
        sa.Column("firings", sa.BigInteger(), nullable=False),
        sa.Column("request_id", sa.String(), sa.ForeignKey("run_request.request_id"), nullable=True),
    )
