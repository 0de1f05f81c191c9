"""Hold with how many threads torch compiled. What was measured until now was compiled with one."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0024"
down_revision = "0023"
branch_labels = None
depends_on = None

_COLUMNS = ("compile_threads", "compile_pool_size")


def upgrade() -> None:
    for name in _COLUMNS:
        op.add_column("trial", sa.Column(name, sa.BigInteger(), nullable=True))
    op.execute(
        "UPDATE trial SET compile_threads = 1 WHERE source_kind = 'measured' "
        "AND trial_id IN (SELECT trial_id FROM trial_detail WHERE compiler IS NOT NULL)"
    )


def downgrade() -> None:
    for name in reversed(_COLUMNS):
        op.drop_column("trial", name)
