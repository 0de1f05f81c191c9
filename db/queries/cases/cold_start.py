"""What a process spent until its first result, phase by phase."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd
from sqlalchemy import select

from compilewatch.db.engine.session import Database
from compilewatch.db.queries.filters import Filters
from compilewatch.db.queries.trials import trials_frame
from compilewatch.db.records.identity import JOB_VERSION
from compilewatch.db.records.trial import PhasesNs
from compilewatch.db.tables.trials import LATEST, SERIES, TRIAL_DETAIL, WORKLOAD

# Before the first compiled call, in the order in which they happen.
_BEFORE_FIRST_CALL = (
    *("interpreter", "import_torch", "harness", "import_libraries", "import_compile_stack"),
    *("build_model", "eager_first"),
)
UNATTRIBUTED = "unattributed"
PHASES: tuple[str, ...] = (*_BEFORE_FIRST_CALL, *PhasesNs.model_fields, "first_call", UNATTRIBUTED)

_AT_ONCE = 500
_STORED = select(TRIAL_DETAIL.c.trial_id, TRIAL_DETAIL.c.cold_start)


def cold_starts(db: Database, trial_ids: Sequence[str]) -> dict[str, list[int]]:
    """The nanoseconds of each of `PHASES` by trial id; 0 for a phase that was not measured.

    The first call is split into its parts where they are known and one phase `first_call` where not. What the
    time to first result holds beyond all measured phases is `unattributed`, so the phases of a trial add up
    to it wherever it is known and not exceeded.
    """
    times: dict[str, list[int]] = {}
    with db.read() as connection:
        for start in range(0, len(trial_ids), _AT_ONCE):
            these = _STORED.where(TRIAL_DETAIL.c.trial_id.in_(trial_ids[start : start + _AT_ONCE]))
            for trial_id, cold_start in connection.execute(these):
                phases = dict(phases_of(cold_start or {}))
                times[trial_id] = [phases.get(phase, 0) for phase in PHASES]
    return times


def newest_job_trials(db: Database, limit: int) -> pd.DataFrame:
    """The newest run of each job, as `trials_frame` returns it, of the `limit` series that ran last.

    A job that starts with cold and with warm caches, or on two machines, has a series of each.
    """
    newest = (
        select(LATEST.c.run_id, LATEST.c.series_id)
        .join(SERIES, SERIES.c.series_id == LATEST.c.series_id)
        .join(WORKLOAD, WORKLOAD.c.workload_id == SERIES.c.workload_id)
        .where(WORKLOAD.c.version == JOB_VERSION)
        .order_by(LATEST.c.started_at.desc(), LATEST.c.series_id)
        .limit(limit)
    )
    rows = db.rows(newest)
    # No filter at all would let everything through.
    trials = trials_frame(db, Filters(runs=tuple({row.run_id for row in rows}) or ("",)))
    chosen: pd.DataFrame = trials[trials["series_id"].isin([row.series_id for row in rows])]
    return chosen


def phases_of(cold_start: dict[str, Any]) -> list[tuple[str, int]]:
    """The measured phases of a stored cold start with their nanoseconds, in order."""
    phases = [
        (phase, cold_start[f"{phase}_ns"])
        for phase in _BEFORE_FIRST_CALL
        if cold_start.get(f"{phase}_ns") is not None
    ]
    parts: dict[str, int | None] = cold_start.get("phases_ns") or {}
    if parts:
        measured = ((phase, parts.get(phase)) for phase in PhasesNs.model_fields)
        phases += [(phase, phase_ns) for phase, phase_ns in measured if phase_ns is not None]
    elif cold_start.get("first_call_ns") is not None:
        phases.append(("first_call", cold_start["first_call_ns"]))
    rest = (cold_start.get("total_ns") or 0) - sum(phase_ns for _, phase_ns in phases)
    return [*phases, (UNATTRIBUTED, rest)] if rest > 0 else phases
