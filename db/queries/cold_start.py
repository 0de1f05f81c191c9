"""What a process spent until its first result, phase by phase."""

from __future__ import annotations

from typing import Any

import pandas as pd
from sqlalchemy import select

from db.queries.columns import dtypes, selected
from db.queries.filters import Filters
from db.queries.frames import MOMENT, frame_of
from db.queries.selection import matching
from db.records import PhasesNs
from db.session import Database
from db.tables import BUILD, MACHINE, SERIES, STRATEGY, TRIAL, TRIAL_DETAIL, WORKLOAD

# Before the first compiled call, in the order in which they happen.
_BEFORE_FIRST_CALL = (
    "interpreter",
    "import_torch",
    "harness",
    "import_libraries",
    "import_compile_stack",
    "build_model",
    "eager_first",
)
UNATTRIBUTED = "unattributed"
PHASES: tuple[str, ...] = (*_BEFORE_FIRST_CALL, *PhasesNs.model_fields, "first_call", UNATTRIBUTED)

_COLUMNS = {
    "trial_id": (TRIAL.c.trial_id, "str"),
    "run_id": (TRIAL.c.run_id, "str"),
    "started_at": (TRIAL.c.started_at, MOMENT),
    "status": (TRIAL.c.status, "str"),
    "series_id": (TRIAL.c.series_id, "str"),
    "machine_id": (SERIES.c.machine_id, "str"),
    "machine": (TRIAL.c.machine_name, "str"),
    "device": (MACHINE.c.device, "str"),
    "build_id": (TRIAL.c.build_id, "str"),
    "build_label": (TRIAL.c.build_label, "str"),
    "torch": (BUILD.c.torch, "str"),
    "workload_id": (SERIES.c.workload_id, "str"),
    "workload": (WORKLOAD.c.name, "str"),
    "strategy_id": (SERIES.c.strategy_id, "str"),
    "strategy": (STRATEGY.c.name, "str"),
    "cache": (STRATEGY.c.cache, "str"),
    "scope": (STRATEGY.c.scope, "str"),
}


def cold_start_frame(db: Database, filters: Filters = Filters()) -> pd.DataFrame:  # noqa: B008
    """One row per matching trial and phase: the trial's case, `phase` (one of `PHASES`) and `phase_ns`.

    Only phases that were measured have a row. The first call is split into its parts where they are known and
    one phase `first_call` where not. What `total_ns` holds beyond all measured phases is `unattributed`, so
    the phases of a trial add up to its time to first result wherever that is known and not exceeded.
    """
    statement = (
        select(*selected(_COLUMNS), TRIAL_DETAIL.c.cold_start)
        .select_from(TRIAL)
        .join(TRIAL_DETAIL, TRIAL_DETAIL.c.trial_id == TRIAL.c.trial_id)
        .join(SERIES, SERIES.c.series_id == TRIAL.c.series_id)
        .join(MACHINE, MACHINE.c.machine_id == SERIES.c.machine_id)
        .join(WORKLOAD, WORKLOAD.c.workload_id == SERIES.c.workload_id)
        .join(STRATEGY, STRATEGY.c.strategy_id == SERIES.c.strategy_id)
        .join(BUILD, BUILD.c.build_id == TRIAL.c.build_id)
        .where(TRIAL_DETAIL.c.cold_start.is_not(None), *matching(filters))
    )
    with db.read() as connection:
        rows = [
            (*case, phase, phase_ns)
            for *case, cold_start in sorted(
                connection.execute(statement), key=lambda row: (row.started_at, row.trial_id)
            )
            for phase, phase_ns in phases_of(cold_start)
        ]
    return frame_of(rows, dtypes(_COLUMNS) | {"phase": "str", "phase_ns": "Int64"})


def phases_of(cold_start: dict[str, Any]) -> list[tuple[str, int]]:
    """The measured phases of a stored cold start with their nanoseconds, in order."""
    found = [
        (phase, cold_start[f"{phase}_ns"])
        for phase in _BEFORE_FIRST_CALL
        if cold_start.get(f"{phase}_ns") is not None
    ]
    parts: dict[str, int | None] = cold_start.get("phases_ns") or {}
    if parts:
        measured = ((phase, parts.get(phase)) for phase in PhasesNs.model_fields)
        found += [(phase, phase_ns) for phase, phase_ns in measured if phase_ns is not None]
    elif cold_start.get("first_call_ns") is not None:
        found.append(("first_call", cold_start["first_call_ns"]))
    rest = (cold_start.get("total_ns") or 0) - sum(phase_ns for _, phase_ns in found)
    return [*found, (UNATTRIBUTED, rest)] if rest > 0 else found
