"""Count cancelled trials apart from those that failed."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"

_KEYS = {
    "machine": "series.machine_id",
    "workload": "series.workload_id",
    "strategy": "series.strategy_id",
    "series": "trial.series_id",
    "build": "trial.build_id",
    "run": "trial.run_id",
}
_CANCELLED = "FROM trial JOIN series ON series.series_id = trial.series_id WHERE failure_kind = 'cancelled'"


def upgrade() -> None:
    for table, key in _KEYS.items():
        column = sa.Column("cancelled_trials", sa.BigInteger(), server_default="0", nullable=False)
        op.add_column(table, column)
        # Two levels: in the inner one "series" is the row of the trial, not the one that is updated.
        op.execute(
            f"UPDATE {table} SET cancelled_trials = (SELECT n FROM "  # noqa: S608
            f"(SELECT {key} AS of_row, count(*) AS n {_CANCELLED} GROUP BY {key}) AS counted "
            f"WHERE of_row = {table}.{table}_id) "
            f"WHERE {table}_id IN (SELECT {key} {_CANCELLED})"
        )
        op.execute(f"UPDATE {table} SET failed_trials = failed_trials - cancelled_trials")  # noqa: S608
