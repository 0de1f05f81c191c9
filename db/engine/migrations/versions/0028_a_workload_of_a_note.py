"""Let a note be about one workload."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0028"
down_revision = "0027"


def upgrade() -> None:
    op.add_column("annotation", sa.Column("workload", sa.String(), nullable=True))
