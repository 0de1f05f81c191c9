"""Hold the CPU time of the first compiled call, and its instructions where the kernel counts them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"

_COLUMNS = ("first_call_cpu_ns", "first_call_instructions")


def upgrade() -> None:
    for name in _COLUMNS:
        op.add_column("trial", sa.Column(name, sa.BigInteger(), nullable=True))
