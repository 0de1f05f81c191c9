"""Record regressions, what people say about them, and who was told."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.create_table(
        "regression",
        sa.Column("regression_id", sa.String(), primary_key=True),
        sa.Column("series_id", sa.String(), sa.ForeignKey("series.series_id"), nullable=False),
        sa.Column("metric", sa.String(length=32), nullable=False),
        sa.Column("base_key", sa.String(), nullable=False),
        sa.Column("head_key", sa.String(), nullable=False),
        sa.Column("revision", sa.BigInteger(), nullable=False),
        sa.Column("revises", sa.String(), sa.ForeignKey("regression.regression_id"), nullable=True),
        sa.Column("verdict", sa.String(length=32), nullable=False),
        sa.Column("recorded_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("document", sa.JSON(), nullable=False),
    )
    op.create_index(
        op.f("ix_regression_series_id_metric_base_key_head_key_revision"),
        "regression",
        ["series_id", "metric", "base_key", "head_key", "revision"],
        unique=True,
    )
    op.create_index(op.f("ix_regression_base_key_head_key"), "regression", ["base_key", "head_key"])
    op.create_index(op.f("ix_regression_recorded_at"), "regression", ["recorded_at"])
    op.create_index(op.f("ix_regression_revises"), "regression", ["revises"])
    op.create_table(
        "triage_event",
        sa.Column("regression_id", sa.String(), sa.ForeignKey("regression.regression_id"), primary_key=True),
        sa.Column("number", sa.BigInteger(), autoincrement=False, primary_key=True),
        sa.Column("state", sa.String(length=32), nullable=False),
        sa.Column("author", sa.String(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("note", sa.String(), nullable=True),
        sa.Column("url", sa.String(), nullable=True),
    )
    op.create_table(
        "notification",
        sa.Column("regression_id", sa.String(), sa.ForeignKey("regression.regression_id"), primary_key=True),
        sa.Column("channel", sa.String(), primary_key=True),
        sa.Column("state", sa.String(length=32), nullable=False),
        sa.Column("deliveries", sa.BigInteger(), nullable=False),
        sa.Column("changed_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("problem", sa.String(), nullable=True),
    )
    op.create_index(op.f("ix_notification_channel_state"), "notification", ["channel", "state"])
