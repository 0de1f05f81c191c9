"""The columns of a history: one row per case and run, or per case and build.

A point has the columns of a case, of the point's own trials, and how far they spread. `db.metrics.trend`
computes it; the table `run_case` keeps those of runs.
"""

from __future__ import annotations

from zlib import crc32

from compilewatch.db.columns.case import CASE_COLUMNS
from compilewatch.db.columns.column import Holder
from compilewatch.db.columns.metrics import BANDED
from compilewatch.db.columns.trial import TRIAL

POINT_COLUMNS: dict[str, str] = {
    "run_id": "str",  # by build: of the newest trial
    **CASE_COLUMNS,
    "first_started_at": "datetime64[us, UTC]",
    "point_suspect": "bool",
    # across trials: 10th and 90th percentile of the trials' values, missing below two of them
    **{f"{metric}_{end}": "Float64" for metric in BANDED for end in ("p10", "p90")},
}
"""Name -> pandas dtype."""

POINT_KEYS = ("run_id", "build_id", "series_id", "conditions_id")
_JOINED = {each.column for each in TRIAL if each.holder not in (Holder.TRIAL, Holder.NONE)}
STORED_POINT: dict[str, str] = {
    **dict.fromkeys(POINT_KEYS, "str"),
    **{name: dtype for name, dtype in POINT_COLUMNS.items() if name not in _JOINED},
}
"""Those of the table `run_case`, keys first: the others are of its machine, build, workload and strategy."""

_FORMULAS = 1
"""Raise it with every change of what the formulas behind a stored point give."""
EDITION = crc32(repr((_FORMULAS, STORED_POINT)).encode())
"""Of what is stored. Where a database has another, `compilewatch db upgrade` makes the table `run_case` anew,
and so does the next trial that is stored: a new column of a case needs no migration there.
"""
