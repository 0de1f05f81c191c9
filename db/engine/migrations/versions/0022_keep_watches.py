"""Keep watches: who is told of which regressions."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0022"
down_revision = "0021"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "watch",
        sa.Column("watch_id", sa.String(), nullable=False),
        sa.Column("key", sa.String(), nullable=False),
        sa.Column("author", sa.String(), nullable=False),
        sa.Column("channel", sa.String(), nullable=False),
        sa.Column("address", sa.String(), nullable=True),
        sa.Column("machine_id", sa.String(), nullable=True),
        sa.Column("workload", sa.String(), nullable=True),
        sa.Column("daily", sa.Boolean(), nullable=False),
        sa.Column("made_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("told_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["machine_id"], ["machine.machine_id"], name=op.f("fk_watch_machine_id_machine")
        ),
        sa.PrimaryKeyConstraint("watch_id", name=op.f("pk_watch")),
        sa.UniqueConstraint("key", name=op.f("uq_watch_key")),
    )


def downgrade() -> None:
    op.drop_table("watch")
