"""Hold the device time without a flush of the L2 cache, for what a loop of steps pays."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"

_NAMES = ("unflushed_ns", "control_unflushed_ns")


def upgrade() -> None:
    for name in _NAMES:
        op.add_column("trial", sa.Column(name, sa.Float(), nullable=True))
