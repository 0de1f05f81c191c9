"""Keep annotations: notes at a day or at a build."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"


def upgrade() -> None:
    op.create_table(
        "annotation",
        sa.Column("annotation_id", sa.String(), primary_key=True),
        sa.Column("text", sa.String(), nullable=False),
        sa.Column("url", sa.String(), nullable=True),
        sa.Column("author", sa.String(), nullable=False),
        sa.Column("written_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("happened_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("build_id", sa.String(), sa.ForeignKey("build.build_id"), nullable=True),
        sa.Column("machine_id", sa.String(), sa.ForeignKey("machine.machine_id"), nullable=True),
    )
