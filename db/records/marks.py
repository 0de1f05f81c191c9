"""The marks behind a case: where its numbers come from, how they were timed, and what bounds it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from compilewatch.db.records.trial import SourceKind, TimingMethod
from compilewatch.db.units import MISSING

UNGATED = "ungated"
UNGATED_MEANS = (
    "Ungated: CUDA events around each step, with every gap in which the GPU waited for the host. "
    "Not comparable with gated times."
)
_BOUNDS = {"host": "host-bound", "device": "device-bound"}


def origin_mark(kind: object, name: object, timing_method: object = None) -> str:
    """Behind a workload: " (imported, NAME)", " (ungated)", or nothing."""
    if kind == SourceKind.IMPORTED:
        return f" (imported, {name})"
    return f" ({UNGATED})" if timing_method == TimingMethod.UNGATED else ""


def origin_mark_of(row: Mapping[Any, Any]) -> str:
    """The same of a row with the columns `source_kind`, `source_name` and, where known, `timing_method`."""
    return origin_mark(row["source_kind"], row["source_name"], row.get("timing_method"))


def timing_text(method: object, bound: object) -> str:
    """How a case was timed and what bounds it: "gated, host-bound"; empty where nothing is known."""
    known = [method if isinstance(method, str) and method != TimingMethod.HOST else "", bound_word(bound)]
    return ", ".join(filter(None, known))


def bound_word(bound: object) -> str:
    """`host-bound`, `device-bound`, or empty where it is not known."""
    return _BOUNDS.get(bound, "") if isinstance(bound, str) else ""


def bound_cell(bound: object) -> str:
    """The same in a table: a dash where it is not known."""
    return bound_word(bound) or MISSING
