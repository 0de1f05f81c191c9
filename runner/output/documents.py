"""The JSON documents of the command line: their shapes are a contract, versioned by `schema`."""

from __future__ import annotations

import json
import re
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pydantic_core import PydanticSerializationError, to_json

from compilewatch.db.cells import plain
from compilewatch.db.errors import CONTROLS
from compilewatch.db.verdicts.case_view import DOORS, Door, case_view

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
    key = (row["build_id"], row["workload"], row["strategy"])
    return {
        **case_view(row, DOORS[Door.RUN_JSON]),
        "reason": None,
        "failure": failures.get(key),
        "verdict": verdicts.get((row["workload"], row["strategy"])),
        "notes": list(notes.get((row["build_id"], row["workload_id"], row["strategy_id"]), ())),
    }


def not_applicable_row(case: NotApplicable) -> dict[str, Any]:
    """A case that means nothing on this device: every figure null, the reason said."""
    unknown: dict[str, Any] = defaultdict(lambda: None, trials=0, failed_trials=0)
    unknown |= {"workload": case.workload, "strategy": case.strategy, "status": NOT_APPLICABLE}
    return case_row(unknown, {}, {}, {}) | {"reason": case.reason}
