"""Hold how many ranks take the steps of a workload."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0030"
down_revision = "0029"


def upgrade() -> None:
    op.add_column("workload", sa.Column("ranks", sa.BigInteger(), nullable=True))
