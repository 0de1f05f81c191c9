"""The metrics among the columns: what is judged, has a history, or can be asked for by a target. Derived:
a new one is a row of `db.columns.trial` or `db.columns.case`.

Command line, pages, API, exports and documents read here what each is called, its unit, how it is written,
which way is good and what it is.

The columns of a history: one row per case and run, or per case and build.

A point has the columns of a case, of the point's own trials, and how far they spread. `db.metrics.trend`
computes it; the table `run_case` keeps those of runs.
"""

from __future__ import annotations

from collections.abc import Iterable
from zlib import crc32

from compilewatch.db.columns.case import CASE, CASE_COLUMNS
from compilewatch.db.columns.column import Column, Holder, SummaryKind, Threshold
from compilewatch.db.columns.source_metrics import source_metric
from compilewatch.db.columns.trial import TRIAL
from compilewatch.db.records.vocabulary import SOURCE_METRIC, Metric


class _Metrics(dict[str, Column]):
    """By key; a figure of a source's own is found by its name and not listed."""

    def __missing__(self, key: str) -> Column:
        name = key.removeprefix(SOURCE_METRIC)
        column = source_metric(name) if name != key else None
        if column is None:
            raise KeyError(key)
        return column


BY_COLUMN: dict[str, Column] = {each.column: each for each in (*TRIAL, *CASE) if each.key}
_BY_KEY = {each.key: each for each in BY_COLUMN.values()}
METRICS = _Metrics({key: _BY_KEY[key] for key in dict.fromkeys((*Metric, *_BY_KEY))})
"""By key, in the order in which they are offered; a `Metric` is a key."""
HISTORY_METRICS = tuple(str(key) for key, each in METRICS.items() if each.axis is not None)
"""Those whose history can be drawn."""
FIRST_METRICS = (
    Metric.LATENCY,
    Metric.SPEEDUP,
    Metric.THROUGHPUT,
    Metric.COMPILE_COST,
    Metric.PEAK_MEMORY,
    Metric.BREAK_EVEN,
)
"""What most people ask of a case: a menu has the rest behind these."""
SUMMARY_COLUMNS: dict[Metric, str] = {metric: METRICS[metric].column for metric in Metric}
"""The column of a case that holds the metric."""
MEASURED_METRICS = tuple(metric for metric in Metric if METRICS[metric].judged)
"""Metrics with noise: tested on log values of trials."""
FURTHER_METRICS = tuple(metric for metric in MEASURED_METRICS if METRICS[metric].summary is SummaryKind.MEAN)
"""Of them those without a formula: their column of a trial, and its mean of a case."""
FURTHER_COLUMNS = tuple(METRICS[metric].column for metric in FURTHER_METRICS)
REQUESTED_METRICS = tuple(
    metric
    for metric in Metric
    if METRICS[metric].axis is not None
    and METRICS[metric].threshold in (Threshold.FINE, Threshold.COARSE)
    and not METRICS[metric].judged
    and METRICS[metric].unit != "x"
)
"""What trials have a value of and two builds are compared by where somebody asks for it, by the same test; it
decides no verdict on the whole."""
COUNTED_METRICS = tuple(metric for metric in Metric if METRICS[metric].threshold is Threshold.EXACT)
"""Metrics without noise: compared exactly; a source may state others (`is_counted`)."""
SPEEDUPS = (Metric.SPEEDUP, Metric.DEVICE_SPEEDUP)
"""Eager time over compiled time."""
BANDED = tuple(each.column for each in METRICS.values() if each.banded)
"""Columns that a history has with their ends across trials."""


def is_counted(metric: Metric) -> bool:
    """Whether it is compared exactly; a figure of a source's own is by its name."""
    column = METRICS.get(metric) or source_metric(metric.removeprefix(SOURCE_METRIC))
    return column is not None and column.threshold is Threshold.EXACT


def higher_is_better(metric: Metric) -> bool:
    return METRICS[metric].higher_is_better


def with_test(metrics: Iterable[Metric]) -> tuple[Metric, ...]:
    """Those of `asked` that have a test of their own; throughput follows from latency."""
    return tuple(each for each in metrics if each in REQUESTED_METRICS and each is not Metric.THROUGHPUT)


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
