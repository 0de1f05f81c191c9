"""What a machine reached in the canaries of a run, and the work of cases beside it.

What a reader must know of the cases of some trials, from the parts of their records that say it.

What a process spent until its first result, phase by phase.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import pandas as pd
from sqlalchemy import Row, func, select

from compilewatch.db.cause.notes import Parts, case_notes
from compilewatch.db.cause.trial_words import Roofs
from compilewatch.db.engine.session import Database
from compilewatch.db.engine.tables import LATEST, SERIES, STRATEGY, TRIAL, TRIAL_DETAIL, WORKLOAD
from compilewatch.db.queries.selection import CASES, Filters, frame_of, matching, oldest_first
from compilewatch.db.queries.trials import trials_frame
from compilewatch.db.records.evidence import CompilerFacts, Memory, Numerics
from compilewatch.db.records.identity import JOB_VERSION
from compilewatch.db.records.sampling_facts import Profile, SamplingFacts
from compilewatch.db.records.strategies import EAGER
from compilewatch.db.records.trial import PhasesNs, Status, StrategyKind

GEMM, COPY = "canary-gemm", "canary-copy"


def roofs_of(database: Database, run_id: str) -> Roofs | None:
    """The fastest of the run's canaries, before and after its trials; None where one of both is missing."""
    took_ns = func.min(func.coalesce(TRIAL.c.device_ns, TRIAL.c.latency_ns)).label("took_ns")
    statement = (
        select(WORKLOAD.c.name, WORKLOAD.c.dtype, WORKLOAD.c.items_per_iteration, took_ns)
        .select_from(TRIAL)
        .join(SERIES, SERIES.c.series_id == TRIAL.c.series_id)
        .join(WORKLOAD, WORKLOAD.c.workload_id == SERIES.c.workload_id)
        .where(TRIAL.c.run_id == run_id, WORKLOAD.c.name.in_((GEMM, COPY)))
        .group_by(WORKLOAD.c.name, WORKLOAD.c.dtype, WORKLOAD.c.items_per_iteration)
    )
    rows = {row.name: row for row in database.rows(statement) if row.took_ns}
    if rows.keys() != {GEMM, COPY}:
        return None
    per_s = {name: row.items_per_iteration / row.took_ns * 1e9 for name, row in rows.items()}
    # A copy reads every byte and writes it.
    return Roofs(rows[GEMM].dtype, per_s[GEMM], 2 * per_s[COPY])


ROOFLINE_COLUMNS = {
    **{"workload_id": "str", "strategy": "str"},
    **dict.fromkeys(("operations", "bytes", "step_ns"), "float64"),
    **dict.fromkeys(("roof_operations_per_s", "roof_bytes_per_s"), "float64"),
}


def rooflines(database: Database, filters: Filters) -> pd.DataFrame:
    """One row per case with a profile, the newest: what an eager step computes and moves, how long a step of
    the case takes, and what the canaries of its run reached a second; columns as `ROOFLINE_COLUMNS`.

    A workload has a row of eager too, timed beside a compiled case where it has no process of its own. A case
    is absent whose operations or bytes nobody counted, or whose run has no canaries in its dtype.
    """
    cells: dict[tuple[str, str], tuple[object, ...]] = {}
    roofs: dict[str, Roofs | None] = {}
    for row in _profiled(database, filters):
        if row.run_id not in roofs:
            roofs[row.run_id] = roofs_of(database, row.run_id)
        reached, work = roofs[row.run_id], Profile.model_validate(row.profile)
        if reached is None or reached.dtype != row.dtype or not work.flops or not work.bytes:
            continue
        counted = (work.flops, work.bytes)
        own, eager = row.own_ns, row.eager_ns
        for strategy, step_ns in ((row.strategy, own), (EAGER.name, eager)):
            if step_ns:
                roof = (reached.operations_per_s, reached.bytes_per_s)
                cells.setdefault(
                    (row.workload_id, strategy), (row.workload_id, strategy, *counted, step_ns, *roof)
                )
    return frame_of(list(cells.values()), ROOFLINE_COLUMNS)


def _profiled(database: Database, filters: Filters) -> list[Row[tuple[object, ...]]]:
    """The newest trial with a profile of each series, those of eager first."""
    order = (TRIAL.c.started_at.desc(), TRIAL.c.trial_id.desc())
    ranked = (
        select(
            *(TRIAL.c.trial_id, TRIAL.c.run_id, TRIAL_DETAIL.c.profile),
            *(WORKLOAD.c.workload_id, WORKLOAD.c.dtype, STRATEGY.c.name.label("strategy")),
            func.coalesce(TRIAL.c.wall_pipelined_ns, TRIAL.c.latency_ns).label("own_ns"),
            func.coalesce(TRIAL.c.control_wall_pipelined_ns, TRIAL.c.control_latency_ns).label("eager_ns"),
            func.row_number().over(partition_by=TRIAL.c.series_id, order_by=order).label("rank"),
        )
        .select_from(CASES)
        .join(TRIAL, TRIAL.c.series_id == SERIES.c.series_id)
        .join(TRIAL_DETAIL, TRIAL_DETAIL.c.trial_id == TRIAL.c.trial_id)
        .where(*matching(filters), TRIAL_DETAIL.c.profile.is_not(None))
        .subquery()
    )
    statement = (
        select(ranked)
        .where(ranked.c.rank == 1)
        .order_by(ranked.c.strategy != EAGER.name, ranked.c.workload_id, ranked.c.strategy)
    )
    return database.rows(statement)


MOST_TRIALS = 5_000
"""Of more, the newest."""
BuildCase = tuple[str, str, str]
"""Build, workload and strategy, by id."""

_READ: dict[str, type[CompilerFacts | Numerics | SamplingFacts | Memory]] = {
    "compiler": CompilerFacts,
    "numerics": Numerics,
    "sampling": SamplingFacts,
    "memory": Memory,
}
_PARTS = (
    select(
        *(TRIAL.c.build_id, SERIES.c.workload_id, SERIES.c.strategy_id, STRATEGY.c.cache, STRATEGY.c.kind),
        *(TRIAL_DETAIL.c[name] for name in _READ),
    )
    .join_from(TRIAL, TRIAL_DETAIL, TRIAL_DETAIL.c.trial_id == TRIAL.c.trial_id)
    .join(SERIES, SERIES.c.series_id == TRIAL.c.series_id)
    .join(STRATEGY, STRATEGY.c.strategy_id == SERIES.c.strategy_id)
    .where(TRIAL.c.status == Status.OK)
)


def notes_of_cases(database: Database, filters: Filters) -> dict[BuildCase, list[str]]:
    """Of every case that has any, the most important first (`db.cause.notes`)."""
    newest = [column.desc() for column in oldest_first()]
    statement = _PARTS.where(*matching(filters)).order_by(*newest).limit(MOST_TRIALS)
    of_cases: dict[BuildCase, list[Parts]] = defaultdict(list)
    with database.read() as connection:
        for build, workload, strategy, cache, kind_of, *parts in connection.execute(statement):
            read: dict[str, Any] = {
                name: None if part is None else kind.model_validate(part)
                for (name, kind), part in zip(_READ.items(), parts, strict=True)
            }
            of_cases[build, workload, strategy].append(Parts(cache, **read, kind=StrategyKind(kind_of)))
    return {case: notes for case, parts in of_cases.items() if (notes := case_notes(parts))}


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


def newest_job_caches(
    db: Database, limit: int, job: str | None = None
) -> dict[str, list[tuple[str, CompilerFacts]]]:
    """By job, or of `job` alone, the processes of its newest run on each host that asked caches, with that
    host; of the `limit` jobs and hosts that ran last.
    """
    of_jobs = (
        select(WORKLOAD.c.workload_id, WORKLOAD.c.name, TRIAL.c.machine_name)
        .add_columns(func.max(TRIAL.c.started_at).label("started_at"))
        .join(SERIES, SERIES.c.workload_id == WORKLOAD.c.workload_id)
        .join(TRIAL, TRIAL.c.series_id == SERIES.c.series_id)
        .where(WORKLOAD.c.version == JOB_VERSION, *(() if job is None else (WORKLOAD.c.name == job,)))
        .group_by(WORKLOAD.c.workload_id, WORKLOAD.c.name, TRIAL.c.machine_name)
        .order_by(func.max(TRIAL.c.started_at).desc(), TRIAL.c.machine_name)
        .limit(limit)
        .subquery()
    )
    same = (TRIAL.c.machine_name == of_jobs.c.machine_name) & (TRIAL.c.started_at == of_jobs.c.started_at)
    statement = (
        select(of_jobs.c.name, of_jobs.c.machine_name, TRIAL_DETAIL.c.compiler)
        .join(SERIES, SERIES.c.workload_id == of_jobs.c.workload_id)
        .join(TRIAL, (TRIAL.c.series_id == SERIES.c.series_id) & same)
        .join(TRIAL_DETAIL, TRIAL_DETAIL.c.trial_id == TRIAL.c.trial_id)
        .order_by(of_jobs.c.started_at.desc(), of_jobs.c.machine_name, TRIAL.c.trial_id)
    )
    jobs: dict[str, list[tuple[str, CompilerFacts]]] = defaultdict(list)
    for name, host, compiler in db.rows(statement):
        facts = CompilerFacts.model_validate(compiler or {})
        if facts.cache or facts.cache_keys:
            jobs[name].append((host, facts))
    return dict(jobs)


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
