"""A change that hits many cases is one, by step of the build, metric and direction, on whatever machines."""

from __future__ import annotations

from pathlib import Path
from statistics import median

import pytest

from compilewatch.db.engine.session import open_database
from compilewatch.db.interchange.importing import import_paths
from compilewatch.db.judge.compare.recorded_regressions import Regression, changes_of
from compilewatch.db.records.ids import machine_identity
from compilewatch.db.records.vocabulary import Metric, Verdict
from compilewatch.db.service.recording import record_comparison
from compilewatch.db.service.regressions import changes_frame, standing_regressions
from compilewatch.db.store.trials import save_trials
from compilewatch.db.verdicts.gateway import compare
from compilewatch.db.verdicts.sides import resolve_side
from tests.builders import MS, START, make_history, make_machine
from tests.regression_cases import STEADY_NS

SAMPLES = 20
MEASURED = Path(__file__).parents[4] / "docs" / "measured"


def recorded(url: str, *steps: tuple[str, str]) -> list[Regression]:
    """What is recorded of comparisons between these builds, each on every machine that has both."""
    with open_database(url) as database:
        for base, head in steps:
            comparison = compare(database, resolve_side(base, database), resolve_side(head, database))
            record_comparison(database, comparison, at=START)
        return [each.regression for each in standing_regressions(database)]


def test_recorded_histories_have_each_regression_in_one_change(sqlite_url: str) -> None:
    with open_database(sqlite_url) as database:
        import_paths(database, [MEASURED / "cpu-history.jsonl"])
    regressions = recorded(sqlite_url, ("torch=2.6.0", "torch=2.8.0"), ("torch=2.6.0", "torch=2.12.1"))
    assert regressions
    changes = changes_of(regressions)
    members = [each.regression_id for change in changes for each in change.regressions]
    assert sorted(members) == sorted(each.regression_id for each in regressions)
    steps_of = {
        (change.base, change.head, change.metric, change.verdict, change.machines) for change in changes
    }
    assert len(steps_of) == len(changes)
    assert len({change.change_id for change in changes}) == len(changes)
    slower = [change for change in changes if change.metric is Metric.LATENCY]
    assert [change.who for change in slower] == ["elementwise with default"] * 2


def test_one_step_on_two_machines_is_one_change_of_all_cases(sqlite_url: str) -> None:
    with open_database(sqlite_url) as database:
        for threads, factor in ((8, 1.3), (16, 1.5)):
            machine = make_machine(f"gpu-box-{threads}", threads=threads)

            def latency_ns(_workload: str, strategy: str, run: int, factor: float = factor) -> float:
                return 12 * MS if strategy == "eager" else STEADY_NS * (factor if run > 2 else 1.0)

            trials = make_history(
                workloads=("mlp", "bert-base", "lstm-cell"),
                strategies=("eager", "default", "max-autotune"),
                builds=("2.12.0",) * 3 + ("2.13.0",) * 3,
                machines=(machine,),
                latency_ns=latency_ns,
                trials_per_case=3,
                between_trials=0.003,
                seed=threads,
            )
            save_trials(database, trials)
            sides = [resolve_side(f"torch={torch}", database) for torch in ("2.12.0", "2.13.0")]
            comparison = compare(database, *sides, machine_id=machine_identity(machine))
            record_comparison(database, comparison, at=START)
        regressions = [each.regression for each in standing_regressions(database)]
    latency = [each for each in changes_of(regressions) if each.metric is Metric.LATENCY]
    (change,) = latency
    assert change.machines == ("gpu-box-16", "gpu-box-8")
    assert change.verdict is Verdict.REGRESSED
    assert len(change.regressions) == len(change.rows) == 12
    changes = [row.change for row in change.rows if row.change is not None]
    assert change.worst.change == max(changes)
    assert change.median_change == median(changes)
    assert change.lost_ns == pytest.approx(3 * 2 * STEADY_NS * (0.3 + 0.5), rel=0.05)
    alone = changes_of(each for each in regressions if each.machine == "gpu-box-8")
    (slower,) = (each for each in alone if each.change_id == change.change_id)
    assert len(slower.rows) == 6
    assert slower.who.startswith("3 workloads with 2 strategies, 6 cases: ")


def test_the_dearest_change_is_first_by_the_time_of_a_step_and_the_steps_measured(sqlite_url: str) -> None:
    """8 ms became 9.6 ms in a workload, and 9 ms in another; the latter was timed four times as long."""
    factors = {"mlp": ("2.13.0", 1.2), "lstm-cell": ("2.14.0", 1.125)}

    def latency_ns(workload: str, strategy: str, run: int) -> float:
        torch, factor = factors[workload]
        slower = strategy != "eager" and run >= {"2.13.0": 3, "2.14.0": 6}[torch]
        return 12 * MS if strategy == "eager" else 8 * MS * (factor if slower else 1.0)

    with open_database(sqlite_url) as database:
        trials = make_history(
            workloads=tuple(factors),
            strategies=("eager", "default"),
            builds=("2.12.0",) * 3 + ("2.13.0",) * 3 + ("2.14.0",) * 12,
            latency_ns=latency_ns,
            trials_per_case=3,
            between_trials=0.001,
            samples=SAMPLES,
        )
        save_trials(database, trials)
    recorded(sqlite_url, ("torch=2.12.0", "torch=2.13.0"), ("torch=2.13.0", "torch=2.14.0"))
    with open_database(sqlite_url) as database:
        states = standing_regressions(database)
        frame = changes_frame(database)
    steps = {each.regression.row.workload: each.steps for each in states}
    assert steps == {
        each.regression.row.workload: SAMPLES
        * sum(
            (trial.workload.name, trial.strategy.name) == (each.regression.row.workload, "default")
            for trial in trials
            if trial.run_id in each.regression.head.run_ids
        )
        for each in states
    }
    assert steps["lstm-cell"] > 2 * steps["mlp"] > 0
    latency = frame[frame["metric"] == "latency"]
    assert list(latency["who"]) == ["lstm-cell with default", "mlp with default"]
    assert list(latency["lost_ns"]) == pytest.approx([1 * MS, 1.6 * MS], rel=0.02)
    assert list(latency["cost_ns"]) == pytest.approx(
        [1 * MS * steps["lstm-cell"], 1.6 * MS * steps["mlp"]], rel=0.02
    )


def test_nothing_recorded_is_no_change() -> None:
    assert changes_of([]) == ()
