"""Hold the code that was measured: its commit, whether it was dirty, and the hash of what was imported."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"


def upgrade() -> None:
    op.add_column("trial", sa.Column("code_commit", sa.String(), nullable=True))
    op.add_column("trial", sa.Column("code_dirty", sa.Boolean(), nullable=True))
    op.add_column("trial", sa.Column("code_hash", sa.String(), nullable=True))
    op.add_column("trial_detail", sa.Column("code", sa.JSON(), nullable=True))
    op.create_index("ix_trial_code_commit", "trial", ["code_commit"])
