"""Keep what workloads of several batches met on their first way through."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    op.add_column("trial_detail", sa.Column("stream", sa.JSON(none_as_null=True), nullable=True))
