"""Keep annotations: notes at a day or at a build."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "annotation",
        sa.Column("annotation_id", sa.String(), nullable=False),
        sa.Column("text", sa.String(), nullable=False),
        sa.Column("url", sa.String(), nullable=True),
        sa.Column("author", sa.String(), nullable=False),
        sa.Column("written_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("happened_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("build_id", sa.String(), nullable=True),
        sa.Column("machine_id", sa.String(), nullable=True),
        sa.ForeignKeyConstraint(["build_id"], ["build.build_id"], name=op.f("fk_annotation_build_id_build")),
        sa.ForeignKeyConstraint(
            ["machine_id"], ["machine.machine_id"], name=op.f("fk_annotation_machine_id_machine")
        ),
        sa.PrimaryKeyConstraint("annotation_id", name=op.f("pk_annotation")),
    )


def downgrade() -> None:
    op.drop_table("annotation")
