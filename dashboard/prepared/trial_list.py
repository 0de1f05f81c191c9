"""Trials as rows of a list."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from dashboard.foreign_text import readable
from dashboard.shaping import number
from db import units
from db.metrics.device_times import bound_of
from db.wording.marks import timing_words

MOST_ROWS = 500
LONGEST_WHY = 200
FIGURES = {
    "latency": "Latency",
    "speedup": "Speedup",
    "first": "Time to first result",
    "peak": "Peak memory",
}
_TIMES = ("timing_method", "device_ns", "wall_pipelined_ns")


def trial_rows(frame: pd.DataFrame, builds: Mapping[str, str]) -> pd.DataFrame:
    """One row of texts per trial of `frame`, which has the oldest first; here the newest. `builds`: names."""
    newest = frame.iloc[::-1]
    speedup = newest["control_latency_ns"].astype("Float64") / newest["latency_ns"]
    return pd.DataFrame(
        {
            "workload": newest["workload_label"],
            "strategy": newest["strategy"],
            "status": newest["status"],
            "why": [
                _why(*found) for found in zip(newest["failure_kind"], newest["failure_message"], strict=True)
            ],
            "latency": [units.duration(value) for value in newest["latency_ns"]],
            "bound": list(map(_timing, *(newest[name].tolist() for name in _TIMES))),
            "speedup": [units.ratio(value) for value in speedup],
            "first": [units.duration(value) for value in newest["time_to_first_result_ns"]],
            "peak": [units.size(value) for value in newest["peak_bytes"]],
            "build": newest["build_id"].map(dict(builds)),
            "started": newest["started_at"],
            "trial": newest["trial_id"],
        }
    )


def _timing(method: object, device_ns: Any, wall_pipelined_ns: Any) -> str:
    """How the trial was timed and what bounds it: "gated, host-bound"; a dash on a CPU."""
    times = (number(device_ns), number(wall_pipelined_ns))
    return timing_words(method, bound_of(method, *times)) or units.MISSING


def _why(kind: object, message: object) -> str | None:
    """Kind and message of a failure, in one line of bounded length; None where there was none."""
    if not isinstance(kind, str):
        return None
    said = units.words(kind) + (f": {readable(message)}" if isinstance(message, str) else "")
    return said if len(said) <= LONGEST_WHY else f"{said[: LONGEST_WHY - 1]}…"
