"""Trials as rows, newest first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from compilewatch.dashboard.parts import parts
from compilewatch.dashboard.parts.cases import CASE
from compilewatch.dashboard.parts.parts import Table, TableColumn
from compilewatch.dashboard.read.shaping import number
from compilewatch.dashboard.text.foreign_text import readable
from compilewatch.db import units
from compilewatch.db.metrics.groups import floats, row_dicts
from compilewatch.db.metrics.throughput import items_of, items_per_step, rates_per_second, throughputs_text
from compilewatch.db.metrics.trial_times import bound_of
from compilewatch.db.records.evidence import FailureKind
from compilewatch.db.records.trial import timing_text

LIST = "trial-table"
CANCELLED = "cancelled"
LONGEST_WHY = 200
_TIMES = ("timing_method", "device_ns", "unflushed_ns", "wall_pipelined_ns")
_COLUMNS = {
    "workload": CASE["workload"],
    **parts.quantities("ns", {"latency": "Latency"}),
    "strategy": CASE["strategy"],
    # The first rows are "ok", which is shorter than "cancelled".
    "status": TableColumn("Status", width_px=95),
    **parts.quantities("ratio", {"speedup": "Speedup"}),
    **parts.numbers({"rate": "Throughput (eager)"}),
    "started": TableColumn("Started (UTC)", kind="moment"),
    "why": TableColumn("Failure", wide=True),
    **parts.hidden(
        {
            **parts.quantities("ns", {"eager": "Eager latency", "first": "Time to first result"}),
            **parts.quantities("bytes", {"peak": "Peak memory"}),
            **parts.texts({"bound": "Timing"}),
            "build": parts.BUILD,
            "trial": parts.TRIAL,
        }
    ),
}


def trials_table(frame: pd.DataFrame, builds: Mapping[str, str], *, of_one: bool = False) -> Table:
    """The trials of `frame`, which has the oldest first. `builds`: build id -> name. Trials `of_one` workload
    need not name it, and where none failed there is nothing to say of failures.
    """
    rows = trial_rows(frame, builds)
    needless = {*(("workload",) if of_one else ()), *(("why",) if rows["why"].isna().all() else ())}
    return Table(
        LIST,
        "Trials, newest first, with status, latency, speedup and memory",
        rows,
        {name: column for name, column in _COLUMNS.items() if name not in needless},
        title="Trials, newest first",
    )


def status_words(frame: pd.DataFrame) -> list[str]:
    """How each trial ended."""
    return [
        CANCELLED if kind == FailureKind.CANCELLED.value else status
        for status, kind in zip(frame["status"].tolist(), frame["failure_kind"].tolist(), strict=True)
    ]


def trial_rows(frame: pd.DataFrame, builds: Mapping[str, str]) -> pd.DataFrame:
    """One row per trial of `frame`, which has the oldest first; here the newest. `builds`: names."""
    newest = frame.iloc[::-1]
    speedup = newest["control_latency_ns"].astype("Float64") / newest["latency_ns"]
    return pd.DataFrame(
        {
            "workload": newest["workload_label"],
            "strategy": newest["strategy"],
            "status": status_words(newest),
            "why": [
                _why(*failure)
                for failure in zip(newest["failure_kind"], newest["failure_message"], strict=True)
            ],
            "rate": _rates(newest),
            "latency": newest["latency_ns"],
            "eager": newest["control_latency_ns"],
            "bound": list(map(_timing, *(newest[name].tolist() for name in _TIMES))),
            "speedup": speedup,
            "first": newest["time_to_first_result_ns"],
            "peak": newest["peak_bytes"],
            "build": newest["build_id"].map(dict(builds)),
            "build_id": newest["build_id"],
            "started": newest["started_at"],
            "trial": newest["trial_id"],
        }
    )


def _rates(trials: pd.DataFrame) -> list[str]:
    items = items_per_step(trials)
    both = (
        rates_per_second(items, floats(trials[name])).tolist()
        for name in ("latency_ns", "control_latency_ns")
    )
    labels = row_dicts(trials[["items_per_iteration", "batch_size", "item"]])
    return [
        throughputs_text(items_of(each)[1], own, eager)
        for each, own, eager in zip(labels, *both, strict=True)
    ]


def _timing(method: object, device_ns: Any, unflushed_ns: Any, wall_pipelined_ns: Any) -> str:
    """How the trial was timed and what bounds it: "gated, host-bound"; a dash on a CPU."""
    times = (number(unflushed_ns) or number(device_ns), number(wall_pipelined_ns))
    return timing_text(method, bound_of(method, *times)) or units.MISSING


def _why(kind: object, message: object) -> str | None:
    """Kind and message of a failure, in one line of bounded length; None where there was none."""
    if not isinstance(kind, str):
        return None
    text = units.words(kind) + (f": {readable(message)}" if isinstance(message, str) else "")
    return text if len(text) <= LONGEST_WHY else f"{text[: LONGEST_WHY - 1]}…"
