"""Hold why a workload and a strategy are set up as they are, and the parts that a strategy compiles."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0029"
down_revision = "0028"


def upgrade() -> None:
    for name in ("workload_reason", "strategy_reason"):
        op.add_column("trial", sa.Column(name, sa.String(), nullable=True))
    op.add_column("trial", sa.Column("float32_error", sa.Float(), nullable=True))
    op.add_column("workload", sa.Column("variant", sa.String(), nullable=True))
    op.add_column("strategy", sa.Column("regions", sa.JSON(), nullable=False, server_default="{}"))
