"""Metrics that two builds are compared by where somebody asks: judged alike, no part of the verdict."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from compilewatch.db.columns.metrics import ASKED_METRICS, METRICS
from compilewatch.db.judge.results import Row
from compilewatch.db.metrics.groups import Floats
from compilewatch.db.metrics.throughput import per_second
from compilewatch.db.records.vocabulary import Metric


def with_test(asked: Iterable[Metric]) -> tuple[Metric, ...]:
    """Those of `asked` that have a test of their own; throughput follows from latency."""
    return tuple(each for each in asked if each in ASKED_METRICS and each is not Metric.THROUGHPUT)


def throughput_rows(rows: Iterable[Row], items: Floats) -> Iterator[Row]:
    """The rows of latency as rows of throughput: the same test, the other way up. `items`: per row."""
    for row, each in zip(rows, items.tolist(), strict=True):
        values = (
            per_second(each, value) if isinstance(value, float) and value else None
            for value in (row.base, row.head)
        )
        base, head = values
        yield row.model_copy(
            update={
                "metric": Metric.THROUGHPUT,
                "unit": METRICS[Metric.THROUGHPUT].unit,
                "base": base,
                "head": head,
                "change": _inverse(row.change),
                "interval": None
                if row.interval is None
                else (_inverse(row.interval[1]), _inverse(row.interval[0])),
                "reason": f"Of latency: {row.reason}",
            }
        )


def _inverse(change: float | None) -> float | None:
    """The relative change of 1 / x."""
    return None if change is None else 1.0 / (1.0 + change) - 1.0
