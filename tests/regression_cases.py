"""Histories in which something regresses, and what the judge says about them: for tests of what follows."""

from __future__ import annotations

from datetime import timedelta

from compilewatch.db.engine.session import Database
from compilewatch.db.judge.compare.sides import Selection
from compilewatch.db.judge.compare.upgrade import compare_builds
from compilewatch.db.judge.results import Comparison
from compilewatch.db.queries.selection import Filters
from compilewatch.db.queries.trials import trials_frame
from compilewatch.db.records.trial import Trial
from tests.builders import MS, START, make_history

STEADY_NS = 8 * MS
RUN_0, RUN_1, RUN_2, RUN_3 = (f"run-gpu-box-3-0-{number:04d}" for number in range(4))


def stepping_history(
    *factors: float, builds: tuple[str, ...], trials_per_case: int = 5, between_trials: float = 0.003
) -> list[Trial]:
    """One run per factor: the compiled latency of every case is `STEADY_NS` times it, eager stays."""

    def latency_ns(_workload: str, strategy: str, run: int) -> float:
        return 12 * MS if strategy == "eager" else STEADY_NS * factors[run]

    return make_history(
        workloads=("mlp", "bert-base"),
        builds=builds,
        latency_ns=latency_ns,
        trials_per_case=trials_per_case,
        between_trials=between_trials,
        every=timedelta(hours=6),
        start=START,
    )


def judged(database: Database, base_run: str, head_run: str) -> Comparison:
    """The verdict between two stored runs, on their trials alone."""
    trials = trials_frame(database, Filters())
    base, head = (Selection(name=run, run_ids=(run,)) for run in (base_run, head_run))
    return compare_builds(trials, base, head)
