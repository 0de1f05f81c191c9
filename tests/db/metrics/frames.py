"""Trial frames built from plain values, with the columns and types the queries return."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pandas as pd
from pandas import DataFrame

from compilewatch.db.columns.column import Kind
from compilewatch.db.columns.trial import TRIAL

START = datetime(2026, 11, 20, 18, 0, tzinfo=UTC)

_FRAMED = [each for each in TRIAL if each.in_frames]
_TEXT = ["suite", "label", "code", *(each.column for each in _FRAMED if each.kind is Kind.TEXT)]
_WHOLE = [each.column for each in TRIAL if each.kind is Kind.INTEGER]
# Both follow from others, of a trial that has them.
_COMPUTED = {"speedup", "throughput_per_s"}
_FRACTIONAL = [each.column for each in TRIAL if each.kind is Kind.FLOAT and each.column not in _COMPUTED]

TRIAL_TYPES: dict[str, str] = {
    **dict.fromkeys(_TEXT, "str"),
    **dict.fromkeys(["started_at", "ended_at"], "datetime64[us, UTC]"),
    **dict.fromkeys(_WHOLE, "Int64"),
    **dict.fromkeys(_FRACTIONAL, "Float64"),
    "shape": "object",
    "packages": "object",
    "settings": "object",
    "suspect": "boolean",
    "code_dirty": "boolean",
}

_numbers = itertools.count(1)


def trial(workload: str = "bert", strategy: str = "default", **fields: Any) -> dict[str, Any]:
    """One row; anything not given is a plain default, and an unknown column is an error.

    `torch` is the build, `machine` its machine's name. Rows made later started later.
    """
    number = next(_numbers)
    machine, build = fields.pop("machine", "box"), fields.pop("torch", "2.13.0")
    row: dict[str, Any] = dict.fromkeys(TRIAL_TYPES) | {
        "trial_id": f"T{number:08d}",
        "run_id": "R1",
        "started_at": START + timedelta(seconds=number),
        "source_kind": "measured",
        "source_name": "compilewatch",
        "machine_id": f"m-{machine}",
        "machine": machine,
        "build_id": f"b-{build}",
        "torch": build,
        "workload_id": f"w-{workload}",
        "workload": workload,
        "workload_version": "v1",
        "task": "inference",
        "batch_size": 8,
        "shape": {"sequence_length": 128},
        "dtype": "bfloat16",
        "items_per_iteration": 8.0,
        "item": "sequence",
        "strategy_id": f"s-{strategy}",
        "strategy": strategy,
        "strategy_kind": "eager" if strategy == "eager" else "compile",
        "cache": "none" if strategy == "eager" else "cold",
        "scope": "full",
        "series_id": f"{machine}/{workload}/{strategy}",
        "status": "ok",
        "numerics_status": "pass",
        "suspect": False,
    }
    unknown = fields.keys() - row.keys()
    assert not unknown, unknown
    return row | fields


def trials_frame(rows: Sequence[dict[str, Any]]) -> DataFrame:
    """The rows as a frame; columns that only some rows have come last, as objects."""
    columns = list(dict.fromkeys([*TRIAL_TYPES, *(name for row in rows for name in row)]))
    raw = DataFrame(list(rows), columns=columns)
    return DataFrame({name: pd.Series(raw[name]).astype(TRIAL_TYPES.get(name, "object")) for name in columns})
