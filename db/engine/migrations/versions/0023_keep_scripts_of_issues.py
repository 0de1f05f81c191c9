"""Keep the scripts that a host made and ran for issues in public."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0023"
down_revision = "0022"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "issue_script",
        sa.Column("issue_id", sa.String(), nullable=False),
        sa.Column("made_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("script", sa.String(), nullable=True),
        sa.Column("is_private", sa.Boolean(), nullable=False),
        sa.Column("problem", sa.String(), nullable=True),
        sa.Column("runs", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("issue_id", name=op.f("pk_issue_script")),
    )


def downgrade() -> None:
    op.drop_table("issue_script")
