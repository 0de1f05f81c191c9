"""Hold the standard deviation of a process's steps, and how many operations were captured.

The second is in the details of trials that are there already; the first is of those stored from now on.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"

_TRIAL = sa.table("trial", sa.column("trial_id"), sa.column("ops_captured"))
_DETAIL = sa.table("trial_detail", sa.column("trial_id"), sa.column("compiler", sa.JSON()))


def upgrade() -> None:
    op.add_column("trial", sa.Column("latency_sd_ns", sa.Float(), nullable=True))
    op.add_column("trial", sa.Column("ops_captured", sa.BigInteger(), nullable=True))
    counted = sa.cast(_DETAIL.c.compiler["ops_captured"].as_string(), sa.BigInteger)
    of_trial = sa.select(counted).where(_DETAIL.c.trial_id == _TRIAL.c.trial_id)
    op.execute(sa.update(_TRIAL).values(ops_captured=of_trial.scalar_subquery()))
