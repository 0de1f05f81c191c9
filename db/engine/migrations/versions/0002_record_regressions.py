"""Record regressions, what people say about them, and who was told."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "regression",
        sa.Column("regression_id", sa.String(), nullable=False),
        sa.Column("series_id", sa.String(), nullable=False),
        sa.Column("metric", sa.String(length=32), nullable=False),
        sa.Column("base_key", sa.String(), nullable=False),
        sa.Column("head_key", sa.String(), nullable=False),
        sa.Column("revision", sa.BigInteger(), nullable=False),
        sa.Column("revises", sa.String(), nullable=True),
        sa.Column("verdict", sa.String(length=32), nullable=False),
        sa.Column("recorded_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("document", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(
            ["revises"], ["regression.regression_id"], name=op.f("fk_regression_revises_regression")
        ),
        sa.ForeignKeyConstraint(
            ["series_id"], ["series.series_id"], name=op.f("fk_regression_series_id_series")
        ),
        sa.PrimaryKeyConstraint("regression_id", name=op.f("pk_regression")),
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
        sa.Column("regression_id", sa.String(), nullable=False),
        sa.Column("number", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("state", sa.String(length=32), nullable=False),
        sa.Column("author", sa.String(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("note", sa.String(), nullable=True),
        sa.Column("url", sa.String(), nullable=True),
        sa.ForeignKeyConstraint(
            ["regression_id"],
            ["regression.regression_id"],
            name=op.f("fk_triage_event_regression_id_regression"),
        ),
        sa.PrimaryKeyConstraint("regression_id", "number", name=op.f("pk_triage_event")),
    )
    op.create_table(
        "notification",
        sa.Column("regression_id", sa.String(), nullable=False),
        sa.Column("channel", sa.String(), nullable=False),
        sa.Column("state", sa.String(length=32), nullable=False),
        sa.Column("deliveries", sa.BigInteger(), nullable=False),
        sa.Column("changed_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("problem", sa.String(), nullable=True),
        sa.ForeignKeyConstraint(
            ["regression_id"],
            ["regression.regression_id"],
            name=op.f("fk_notification_regression_id_regression"),
        ),
        sa.PrimaryKeyConstraint("regression_id", "channel", name=op.f("pk_notification")),
    )
    op.create_index(op.f("ix_notification_channel_state"), "notification", ["channel", "state"])


def downgrade() -> None:
    op.drop_table("notification")
    op.drop_table("triage_event")
    op.drop_table("regression")
