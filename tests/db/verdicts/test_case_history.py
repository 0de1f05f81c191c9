"""The history of one case, judged where the database is: what stands at last, whoever asks."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from compilewatch.db.engine.session import Database
from compilewatch.db.judge.policy import Policy
from compilewatch.db.records.vocabulary import Metric, Verdict
from compilewatch.db.store.trials import save_trials
from compilewatch.db.verdicts.case_history import CaseHistory, case_history, chosen_points
from tests.builders import MS, make_history


def judged(database: Database, runs: int, factor: Callable[[int], float]) -> CaseHistory:
    """`factor` says how much slower the compiled case is in each of so many nightly runs."""

    def latency_ns(_workload: str, strategy: str, run: int) -> float:
        return 12 * MS if strategy == "eager" else 8 * MS * factor(run)

    builds = ("2.12.0",) * (runs // 2) + ("2.13.0",) * (runs - runs // 2)
    trials = make_history(workloads=("mlp",), builds=builds, latency_ns=latency_ns, trials_per_case=2)
    save_trials(database, trials)
    points, of_workload, _ = chosen_points(database, "mlp", "default", None)
    return case_history(database, points, of_workload, Metric.LATENCY, Policy())


@pytest.mark.parametrize(
    ("factor", "verdict"),
    [
        (lambda _run: 1.0, Verdict.UNCHANGED),
        (lambda run: 1.08 if run >= 12 else 1.0, Verdict.REGRESSED),
        (lambda run: 1.0 if run >= 12 else 1.08, Verdict.UNCHANGED),
    ],
    ids=["steady", "slower", "faster"],
)
def test_the_last_change_decides_a_history(
    database: Database, factor: Callable[[int], float], verdict: Verdict
) -> None:
    found = judged(database, 24, factor)
    assert (found.runs, found.is_by_release, found.newest) == (24, False, None)
    assert found.verdict(Policy()) is verdict


def test_of_too_few_runs_the_newest_two_decide(database: Database) -> None:
    found = judged(database, 6, lambda _run: 1.0)
    assert found.runs == 6 < Policy().history.fewest_runs
    assert found.newest is not None
    assert found.verdict(Policy()) is not Verdict.REGRESSED
