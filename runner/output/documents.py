"""The JSON documents of the command line: their shapes are a contract, versioned by `schema`."""

from __future__ import annotations

import json
import re
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pydantic_core import PydanticSerializationError, to_json

from compilewatch.db.columns.metrics import FURTHER_COLUMNS
from compilewatch.db.errors import CONTROLS
from compilewatch.db.json_rows import plain
from compilewatch.db.metrics.throughput import items_of
from compilewatch.db.records.trial import CONTROL_TIMES, DEVICE_TIMES, SPEEDUP_COLUMNS
from compilewatch.db.units import NEVER

if TYPE_CHECKING:
    from pandas import DataFrame

    from compilewatch.runner.plan.plan import NotApplicable

RUN_SCHEMA = "compilewatch.run/1"
NOT_APPLICABLE = "not_applicable"
_NOT_ASCII = re.compile("[^\n\x20-\x7e]")


def print_document(document: Mapping[str, Any]) -> None:
    """One JSON document on standard output."""
    # Python's own encoder takes a second for the cases of a large suite, once it is to indent.
    try:
        text = to_json(document, indent=2, inf_nan_mode="null", fallback=plain).decode()
    except PydanticSerializationError:
        text = to_json(_readable(document), indent=2, inf_nan_mode="null", fallback=plain).decode()
    # JSON escapes only the first 32, and a terminal obeys these as well; some streams take ASCII alone.
    is_utf8 = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    escaped = CONTROLS if is_utf8 else _NOT_ASCII
    sys.stdout.write(escaped.sub(lambda match: json.dumps(match[0])[1:-1], text) + "\n")


def _readable(value: Any) -> Any:
    """`value` with escapes for what is not UTF-8 in the name of a file."""
    if isinstance(value, str):
        return value.encode(errors="backslashreplace").decode()
    if isinstance(value, Mapping):
        return {_readable(key): _readable(each) for key, each in value.items()}
    return [*map(_readable, value)] if isinstance(value, list | tuple) else value


def run_document(
    run_ids: Sequence[str],
    machine: Mapping[str, Any] | None,
    builds: Sequence[Mapping[str, Any]],
    cases: DataFrame,
    not_applicable: Sequence[NotApplicable],
    failures: Mapping[tuple[str, str, str], Mapping[str, Any]],
    verdicts: Mapping[tuple[str, str], str],
    notes: Mapping[tuple[str, str, str], Sequence[str]],
) -> dict[str, Any]:
    """What `run --json` prints: one row per case, measured or not applicable.

    `cases` comes from `summarize_cases`; `failures` by (build id, workload, strategy) holds kind and message
    of the newest failed trial; `verdicts` by (workload, strategy) the judgement against the run before;
    `notes` by ids of build, workload and strategy what a reader must know, the most important first.
    `run_id` and `build` are those of the first run; several builds are all in `runs` and `builds`.
    """
    rows = [case_row(row, failures, verdicts, notes) for row in cases.to_dict("records")]
    rows += [not_applicable_row(case) for case in not_applicable]
    return {
        "schema": RUN_SCHEMA,
        "trials_of": "run",
        "run_id": run_ids[0],
        "runs": list(run_ids),
        "machine": machine,
        "build": builds[0] if builds else None,
        "builds": list(builds),
        "rows": rows,
    }


def case_row(
    row: Mapping[Any, Any],
    failures: Mapping[tuple[str, str, str], Mapping[str, Any]],
    verdicts: Mapping[tuple[str, str], str],
    notes: Mapping[tuple[str, str, str], Sequence[str]],
) -> dict[str, Any]:
    """One case of a frame of cases as JSON; what could not be measured is null."""
    low, high = _number(row["speedup_low"]), _number(row["speedup_high"])
    key = (row["build_id"], row["workload"], row["strategy"])
    return {
        "workload": row["workload"],
        "strategy": row["strategy"],
        "build_id": row["build_id"],
        "status": row["status"],
        "reason": None,
        "failure": failures.get(key),
        "latency_ns": _number(row["latency_ns"]),
        "control_latency_ns": _number(row["control_latency_ns"]),
        "throughput_per_s": _number(row["throughput_per_s"]),
        "control_throughput_per_s": _number(row["control_throughput_per_s"]),
        "item": items_of(row)[1] if row["status"] != NOT_APPLICABLE else None,
        "timing_method": _text(row["timing_method"]),
        "bound": _text(row["bound"]),
        **{name: _number(row[name]) for name in (*DEVICE_TIMES, *CONTROL_TIMES, *SPEEDUP_COLUMNS)},
        "speedup": _number(row["speedup"]),
        "speedup_interval": None if low is None or high is None else [low, high],
        "compile_cost_ns": _number(row["compile_cost_ns"]),
        "break_even_steps": _break_even(row),
        "break_even_interval": _break_even_interval(row),
        "peak_memory_bytes": _number(row["peak_bytes"]),
        **{name: _number(row[name]) for name in FURTHER_COLUMNS},
        "graph_breaks": _number(row["graph_breaks"]),
        "recompiles": _number(row["recompiles"]),
        "nothing_compiled": bool(row["nothing_compiled"]),
        "numerics": _text(row["numerics_status"]),
        "first_look": bool(row["first_look"]),
        "trials": int(row["trials"]),
        "failed_trials": int(row["failed_trials"]),
        "verdict": verdicts.get((row["workload"], row["strategy"])),
        "notes": list(notes.get((row["build_id"], row["workload_id"], row["strategy_id"]), ())),
    }


def not_applicable_row(case: NotApplicable) -> dict[str, Any]:
    """A case that means nothing on this device: every figure null, the reason said."""
    unknown: dict[str, Any] = defaultdict(lambda: None, trials=0, failed_trials=0)
    unknown |= {"workload": case.workload, "strategy": case.strategy, "status": NOT_APPLICABLE}
    return case_row(unknown, {}, {}, {}) | {"reason": case.reason}


def _break_even(row: Mapping[Any, Any]) -> int | str | None:
    if row["break_even"] == NEVER:
        return NEVER
    steps = row["break_even_steps"]
    return None if _is_missing(steps) else int(steps)


def _break_even_interval(row: Mapping[Any, Any]) -> list[int | str] | None:
    """Its ends in steps; "never" where one lies beyond every number of steps."""
    kind = row["break_even_interval"]
    if kind not in ("bounded", "open", "never"):
        return None
    low, high = row["break_even_low"], row["break_even_high"]
    return [NEVER if _is_missing(low) else int(low), NEVER if _is_missing(high) else int(high)]


def _number(value: Any) -> int | float | None:
    if value is None or _is_missing(value):
        return None
    number = float(value)
    return int(number) if number.is_integer() else number


def _text(value: Any) -> str | None:
    return None if value is None or _is_missing(value) else str(value)


def _is_missing(value: Any) -> bool:
    # pandas takes a while to import, and documents without a frame do without it.
    import pandas as pd

    return bool(pd.isna(value))
