"""The gateway judges both sides with the nearest runs of each case as their past, and reads no more."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pandas as pd
import pytest
from sqlalchemy import update

from compilewatch.db.engine.session import Database
from compilewatch.db.engine.tables import RUN
from compilewatch.db.judge.compare.sides import Selection, VerdictError
from compilewatch.db.judge.compare.strategies import compare_strategies
from compilewatch.db.judge.compare.upgrade import compare_builds
from compilewatch.db.judge.policy import Policy
from compilewatch.db.judge.results import Comparison
from compilewatch.db.queries import comparison
from compilewatch.db.queries.selection import Filters
from compilewatch.db.queries.trials import trials_frame
from compilewatch.db.records.trial import Trial
from compilewatch.db.records.vocabulary import Metric
from compilewatch.db.store.trials import save_trials, start_run
from compilewatch.db.verdicts.gateway import SEARCHED_FACTOR, compare
from tests.builders import START, make_history

RUNS = Policy().history_runs


def run(number: int, seed: int = 0) -> str:
    return f"run-gpu-box-3-{seed}-{number:04d}"


def side(*run_ids: str) -> Selection:
    return Selection(name=run_ids[0], run_ids=run_ids)


def nights(runs: int, *, workloads: tuple[str, ...] = ("mlp",), **how: object) -> list[Trial]:
    return make_history(
        workloads=workloads,
        builds=["2.13.0"] * runs,
        trials_per_case=2,
        between_trials=0.01,
        samples=2,
        **how,  # type: ignore[arg-type]
    )


def judged_by_hand(database: Database, base: str, head: str, past: pd.Series) -> Comparison:
    """`past`: which trials of everything stored are the history."""
    everything = trials_frame(database)
    sides = everything[everything["run_id"].isin([base, head])]
    return compare_builds(sides, side(base), side(head), history=everything[past])


def test_a_short_history_is_read_whole(sqlite_database: Database) -> None:
    save_trials(sqlite_database, nights(12))
    everything = trials_frame(sqlite_database)
    by_hand = judged_by_hand(sqlite_database, run(3), run(11), everything["trial_id"].notna())
    assert compare(sqlite_database, side(run(3)), side(run(11))) == by_hand


@pytest.mark.parametrize(
    ("head", "past"),
    [
        # Those before it; the base is far away and no part of the past.
        (RUNS + 9, range(9, RUNS + 9)),
        # Before it are too few: the runs that followed make it up.
        (4, [*range(1, 4), *range(5, RUNS + 2)]),
    ],
)
def test_the_past_of_a_case_is_its_nearest_runs(database: Database, head: int, past: list[int]) -> None:
    save_trials(database, nights(RUNS + 10))
    expected = trials_frame(database)["run_id"].isin([run(number) for number in past])
    assert sum(expected) == RUNS * 4
    found = compare(database, side(run(0)), side(run(head)))
    assert found == judged_by_hand(database, run(0), run(head), expected)


def test_runs_of_other_cases_take_no_place_of_a_cases_past(database: Database) -> None:
    save_trials(database, nights(RUNS + 4))
    hourly = nights(
        2 * RUNS,
        workloads=("bert-base",),
        seed=1,
        start=START + timedelta(days=RUNS + 2, minutes=30),
        every=timedelta(minutes=20),
    )
    save_trials(database, hourly)
    found = compare(database, side(run(RUNS + 2)), side(run(RUNS + 3)))
    past = trials_frame(database)["run_id"].isin([run(number) for number in range(2, RUNS + 2)])
    assert found == judged_by_hand(database, run(RUNS + 2), run(RUNS + 3), past)


def test_filters_narrow_the_past_as_they_narrow_the_sides(sqlite_database: Database) -> None:
    save_trials(sqlite_database, nights(20))
    since = START + timedelta(days=10)
    found = compare(sqlite_database, side(run(18)), side(run(19)), Filters(since=since))
    past = trials_frame(sqlite_database)["run_id"].isin([run(number) for number in range(10, 18)])
    assert found == judged_by_hand(sqlite_database, run(18), run(19), past)


def test_a_break_even_is_one_number_whatever_strategies_are_looked_at(sqlite_database: Database) -> None:
    """Eager is that of all processes of a workload, beside whichever strategy it was measured."""
    save_trials(sqlite_database, nights(2, strategies=("eager", "default", "max-autotune")))

    def told(comparison: Comparison) -> dict[str, list[object]]:
        rows = (row for row in comparison.rows if row.metric is Metric.BREAK_EVEN)
        return {row.strategy: [row.base, row.head] for row in rows}

    sides = side(run(0)), side(run(1))
    every = told(compare(sqlite_database, *sides))
    for strategy in ("default", "max-autotune"):
        alone = told(compare(sqlite_database, *sides, Filters(strategies=(strategy,))))
        assert alone == {strategy: every[strategy]}
    newest = trials_frame(sqlite_database, Filters(runs=(run(1),)))
    against = told(compare_strategies(newest, "default", "max-autotune"))
    assert against == {"max-autotune": [every["default"][1], every["max-autotune"][1]]}


def test_a_policy_says_how_many_runs_are_the_past(sqlite_database: Database) -> None:
    save_trials(sqlite_database, nights(40))
    policy = Policy(history_runs=22)
    past = trials_frame(sqlite_database)["run_id"].isin([run(number) for number in range(16, 38)])
    everything = trials_frame(sqlite_database)
    expected = compare_builds(everything, side(run(38)), side(run(39)), policy, history=everything[past])
    assert compare(sqlite_database, side(run(38)), side(run(39)), policy=policy) == expected


@pytest.mark.parametrize("named", [True, False])
def test_a_machine_that_is_named_is_asked_about_alone(sqlite_database: Database, *, named: bool) -> None:
    machines = ("gpu-box-3", "gpu-box-4")
    history = make_history(workloads=("mlp",), builds=("2.12.0", "2.13.0"), machines=machines)
    save_trials(sqlite_database, history)
    trials = trials_frame(sqlite_database)
    base, head = (
        Selection(name=torch, build_ids=tuple(trials.loc[trials["torch"] == torch, "build_id"].unique()))
        for torch in ("2.12.0", "2.13.0")
    )
    machine_id = str(trials["machine_id"].iloc[0])
    filters = Filters(machines=(machine_id,))
    found = (
        compare(sqlite_database, base, head, machine_id=machine_id)
        if named
        else compare(sqlite_database, base, head, filters)
    )
    assert (found.machine_id, found.total) == (machine_id, found.matched)
    assert compare(sqlite_database, base, head, replace(filters, workloads=("mlp",))).rows == found.rows


def test_a_side_without_a_trial_of_the_case_asked_for_is_refused(sqlite_database: Database) -> None:
    save_trials(sqlite_database, nights(2))
    with pytest.raises(VerdictError, match="fits these filters"):
        compare(sqlite_database, side(run(0)), side(run(1)), Filters(workloads=("bert-base",)))
    with pytest.raises(VerdictError, match="is stored"):
        compare(sqlite_database, side(run(0)), side("nothing"))


def count_reads(patch: pytest.MonkeyPatch) -> list[int]:
    """How many trials each read of the gateway brings from now on."""
    read: list[int] = []

    def counted(frame: Callable[..., pd.DataFrame]) -> Callable[..., pd.DataFrame]:
        def count(*arguments: object, **named: object) -> pd.DataFrame:
            found = frame(*arguments, **named)
            read.append(len(found))
            return found

        return count

    # All that the gateway reads trials by.
    for name in ("frame_where", "_trials"):
        patch.setattr(comparison, name, counted(getattr(comparison, name)))
    return read


def test_what_is_read_does_not_grow_with_the_history(
    sqlite_database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = count_reads(monkeypatch)
    save_trials(sqlite_database, nights(40))
    compare(sqlite_database, side(run(38)), side(run(39)))
    assert read == [2 * 4, RUNS * 4]
    read.clear()
    save_trials(sqlite_database, nights(150, seed=1, start=START + timedelta(days=99)))
    compare(sqlite_database, side(run(148, 1)), side(run(149, 1)))
    assert read == [2 * 4, RUNS * 4]


def test_a_new_case_does_not_make_the_whole_history_be_read(sqlite_database: Database) -> None:
    """One that ran last so long ago that `SEARCHED_FACTOR` times as many runs came since has no past."""
    save_trials(sqlite_database, nights(10, workloads=("bert-base",), seed=1))
    since = START + timedelta(days=10)
    save_trials(sqlite_database, nights(SEARCHED_FACTOR * RUNS, start=since))
    after = since + timedelta(days=SEARCHED_FACTOR * RUNS)
    save_trials(sqlite_database, nights(2, workloads=("bert-base",), seed=2, start=after))
    found = compare(sqlite_database, side(run(0, 2)), side(run(1, 2)))
    nothing = pd.Series(data=False, index=range(len(trials_frame(sqlite_database))))
    assert found == judged_by_hand(sqlite_database, run(0, 2), run(1, 2), nothing)


def test_trials_that_were_added_until_they_decided_have_their_part_of_the_level(
    sqlite_database: Database,
) -> None:
    """A run that was begun without a number of trials was judged as they came."""
    trials = make_history(
        workloads=("mlp",), builds=["2.13.0"] * 2, trials_per_case=6, between_trials=0.01, samples=2
    )

    def intervals() -> list[tuple[float, float]]:
        rows = compare(sqlite_database, side(run(0)), side(run(1))).rows
        return [row.interval for row in rows if row.interval is not None]

    widths = []
    for run_id, planned in ((run(0), None), (run(1), 12)):
        begun = {"suite": None, "label": None, "started_at": START, "planned_trials": planned}
        start_run(sqlite_database, run_id=run_id, **begun)  # type: ignore[arg-type]
    save_trials(sqlite_database, trials)
    widths.append(intervals())
    with sqlite_database.write() as connection:
        connection.execute(update(RUN).where(RUN.c.run_id == run(1)).values(planned_trials=None))
    widths.append(intervals())
    fixed, added = widths
    assert fixed, "a base whose trials were added is nothing to the level"
    for (low, high), (lower, higher) in zip(fixed, added, strict=True):
        assert lower < low
        assert high < higher
