"""Hold the four times of a GPU, how they were taken, and the version of each record."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"

_TIMES = ("device_ns", "issue_ns", "wall_sync_ns", "wall_pipelined_ns")
_METHODS = ("timing_method", "control_timing_method")
_MEDIANS = (*_TIMES, *(f"control_{name}" for name in _TIMES))


def upgrade() -> None:
    version = sa.Column("record_version", sa.BigInteger(), server_default="1", nullable=False)
    op.add_column("trial", version)
    for name in _METHODS:
        op.add_column("trial", sa.Column(name, sa.String(length=32), nullable=True))
    for name in _MEDIANS:
        op.add_column("trial", sa.Column(name, sa.Float(), nullable=True))
    op.add_column("trial_detail", sa.Column("timing", sa.JSON(), nullable=True))
    # Version 1 timed a GPU with events and no gate, a CPU with the host's clock; others do not say.
    for method, latency in zip(_METHODS, ("latency_ns", "control_latency_ns"), strict=True):
        op.execute(
            f"UPDATE trial SET {method} = (SELECT CASE machine.device WHEN 'cpu' THEN 'host' "  # noqa: S608
            "ELSE 'ungated' END FROM series JOIN machine ON machine.machine_id = series.machine_id "
            f"WHERE series.series_id = trial.series_id) "
            f"WHERE source_kind = 'measured' AND {latency} IS NOT NULL"
        )
