"""What runs measured, kept at write time: always what the trials themselves say."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pandas as pd
import pytest
from sqlalchemy import Insert, String, Table, cast, insert, literal, select, true

from compilewatch.db.engine.session import Database
from compilewatch.db.engine.tables import RUN, RUN_PART
from compilewatch.db.queries import facets
from compilewatch.db.queries.facets import measured_workloads
from compilewatch.db.queries.run_parts import (
    builds_newest_first,
    last_measured_at,
    measured_builds,
    newest_build,
    newest_run,
    newest_runs_began,
    newest_two,
    of_newest_builds,
    run_parts,
    run_side,
    stored_builds,
)
from compilewatch.db.queries.selection import Filters
from compilewatch.db.queries.trials import (
    count_trials,
    latest_trials_frame,
    newest_trials_frame,
    trials_frame,
)
from compilewatch.db.records.trial import FailureKind, Status, Task
from compilewatch.db.store.trials import save_trials
from tests.builders import START, make_failure, make_history, make_imported, make_trial

SELECTIONS = [
    Filters(),
    Filters(suites=("standard",)),
    Filters(tasks=(Task.TRAINING,)),
    Filters(workloads=("mlp",), strategies=("default",)),
    Filters(since=START + timedelta(days=1), until=START + timedelta(days=2)),
    Filters(statuses=(Status.FAILED,)),
    Filters(suites=("none such",)),
]


@pytest.fixture(scope="module")
def measured(module_database: Database) -> Database:
    """Two machines with other builds each, written in two parts so that rows are updated, not only made."""
    builds = ("2.11.0", "2.12.0", "2.13.0")
    trials = [
        *make_history(workloads=("bert-base", "mlp"), builds=builds, failures=[("mlp", "default", 1)]),
        *make_history(workloads=("mlp",), builds=("2.12.0",), machines=("gpu-box-1",), seed=1),
    ]
    save_trials(module_database, trials[::2])
    save_trials(module_database, trials[1::2])
    return module_database


def _expected(database: Database) -> set[tuple[Any, ...]]:
    groups = trials_frame(database).groupby(["run_id", "machine_id", "build_id"])["started_at"]
    return {(*key, len(group), group.min(), group.max()) for key, group in groups}


def test_the_parts_of_runs_are_what_the_trials_say(measured: Database) -> None:
    with measured.read() as connection:
        rows = connection.execute(select(RUN_PART)).all()
    assert {tuple(row) for row in rows} == _expected(measured)
    assert len(run_parts(measured, [row.run_id for row in rows])) == len(rows)


@pytest.mark.parametrize("filters", SELECTIONS, ids=str)
def test_builds_are_those_of_the_trials_newest_first(measured: Database, filters: Filters) -> None:
    for machine in (None, *trials_frame(measured)["machine_id"].unique()):
        here = Filters(**{**vars(filters), "machines": (machine,) if machine else ()})
        newest = trials_frame(measured, here).groupby("build_id")["started_at"].max()
        ordered = list(newest.sort_values(ascending=False).index)
        assert (
            stored_builds(measured, here) == stored_builds(measured, here, only_measured=True) == {*ordered}
        )
        assert builds_newest_first(measured, here) == measured_builds(measured, here) == ordered
        assert measured_builds(measured, here, newest=2) == ordered[:2]
        latest = latest_trials_frame(measured, here)
        of_runs = trials_frame(measured, here) if latest.empty else latest
        expected = None if of_runs.empty else of_runs.sort_values("started_at")["build_id"].iloc[-1]
        assert newest_build(measured, here) == expected


def test_imported_builds_count_only_where_none_was_measured(database: Database) -> None:
    """2.12.0 was imported too, long after 2.13.0 was measured; 2.14.0 and 2.15.0 were only imported."""
    imported = [
        make_imported(
            build=build,
            suite="standard",
            run_id=f"imported-{build}",
            trial_id=f"imported-{build}",
            started_at=START + timedelta(days=days),
        )
        for build, days in (("2.14.0", 200), ("2.12.0", 300), ("2.15.0", 400))
    ]
    save_trials(database, imported)

    def told(found: list[str]) -> list[str]:
        rows = facets.builds(database)
        torch = dict(zip(rows["build_id"], rows["torch"], strict=True))
        return [torch[build] for build in found]

    every = ["2.15.0", "2.12.0", "2.14.0"]
    selections = (Filters(), Filters(suites=("standard",)), Filters(tasks=(Task.INFERENCE,)))
    for filters in selections:
        assert told(measured_builds(database, filters)) == every
        assert told(builds_newest_first(database, filters)) == every
        assert stored_builds(database, filters, only_measured=True) == frozenset()
    save_trials(database, make_history(workloads=("bert-base",), builds=("2.12.0", "2.13.0")))
    for filters in selections:
        assert told(measured_builds(database, filters)) == ["2.13.0", "2.12.0"]
        assert told(builds_newest_first(database, filters)) == [*every, "2.13.0"]
        measured = stored_builds(database, filters, only_measured=True)
        assert sorted(told([*measured])) == ["2.12.0", "2.13.0"]
        assert sorted(told([*stored_builds(database, filters)])) == sorted([*every, "2.13.0"])


@pytest.mark.parametrize("filters", [Filters(), Filters(tasks=(Task.INFERENCE,))], ids=str)
def test_of_builds_of_one_moment_that_of_the_newest_torch_comes_first(
    database: Database, filters: Filters
) -> None:
    """As files imported by one command with one --measured-at have: no id may decide which is the newest."""
    versions = ("2.9.1", "2.10.0", "2.11.0", "2.8.0")
    save_trials(
        database,
        [
            make_imported(build=version, run_id=f"imported-{version}", started_at=START)
            for version in versions
        ],
    )
    rows = facets.builds(database)
    torch = dict(zip(rows["build_id"], rows["torch"], strict=True))
    ordered = ["2.11.0", "2.10.0", "2.9.1", "2.8.0"]
    assert [torch[build] for build in builds_newest_first(database, filters)] == ordered
    assert [torch[build] for build in measured_builds(database, filters)] == ordered
    assert [torch[build] for build in measured_builds(database, filters, newest=1)] == ordered[:1]
    newest = newest_build(database, filters)
    assert newest is not None
    assert torch[newest] == "2.11.0"


@pytest.mark.parametrize("filters", SELECTIONS, ids=str)
def test_each_machine_has_its_newest_build(measured: Database, filters: Filters) -> None:
    found = of_newest_builds(measured, filters)
    assert [each.machines for each in found] == [
        (machine,) for machine in sorted(trials_frame(measured, filters)["machine_id"].unique())
    ]
    for each in found:
        assert each.builds == (newest_build(measured, replace(filters, machines=each.machines)),)
        assert replace(each, machines=(), builds=()) == filters
    named = replace(filters, builds=("b", "a"))
    assert of_newest_builds(measured, named) == [named]


@pytest.mark.parametrize("filters", SELECTIONS, ids=str)
def test_the_newest_trials_are_the_last_of_all(measured: Database, filters: Filters) -> None:
    everything = trials_frame(measured, filters)
    for limit in (1, 5, 1000):
        found = newest_trials_frame(measured, filters, limit)
        pd.testing.assert_frame_equal(found, everything.tail(limit).reset_index(drop=True))
    assert count_trials(measured, filters) == len(everything)


def test_a_cancelled_trial_counts_among_the_failed(database: Database) -> None:
    kinds = (FailureKind.CANCELLED, FailureKind.TIMEOUT, None)
    save_trials(database, [make_trial(failure=kind and make_failure(kind)) for kind in kinds])
    failed = Filters(statuses=(Status.FAILED,))
    assert count_trials(database, failed) == len(trials_frame(database, failed)) == 2


def test_the_newest_runs_began_with_the_oldest_of_them(measured: Database) -> None:
    began = trials_frame(measured).groupby("run_id")["started_at"].agg(["min", "max"]).sort_values("max")
    assert newest_runs_began(measured, Filters(), 2) == began["min"].iloc[-2:].min()
    assert newest_runs_began(measured, Filters(), len(began)) == began["min"].min()
    assert newest_runs_began(measured, Filters(), len(began) + 1) is None


@pytest.mark.parametrize("filters", SELECTIONS, ids=str)
def test_workloads_are_those_of_the_trials(measured: Database, filters: Filters) -> None:
    expected = trials_frame(measured, filters).drop_duplicates("workload_id").sort_values("workload")
    found = measured_workloads(measured, filters)
    assert found.to_dict("records") == expected[list(found.columns)].to_dict("records")


def test_when_a_build_was_measured_last(measured: Database) -> None:
    last = trials_frame(measured).groupby("build_id")["started_at"].max()
    for build, moment in last.items():
        assert last_measured_at(measured, Filters(builds=(str(build),))) == moment
    assert last_measured_at(measured, Filters(builds=("none such",))) is None


def test_runs_that_overlap_through_another_were_measured_together(database: Database) -> None:
    """The first release took its turns throughout; the second ended before the third began."""
    for build, hours in (("2.11.0", (0, 25)), ("2.12.0", (1, 10)), ("2.13.0", (12, 24))):
        turns = (
            make_trial(build=build, run_id=f"of-{build}", started_at=START + timedelta(hours=each))
            for each in hours
        )
        save_trials(database, turns)
    newest = newest_run(database, measured=True)
    assert newest.run_id == "of-2.13.0"
    both = newest_two(database, newest.run_id, measured=True)
    assert both == (run_side("of-2.13.0"), run_side("of-2.12.0"))
    torch = facets.builds(database).set_index("build_id")["torch"]
    assert [torch[each] for each in measured_builds(database, newest=2)] == ["2.13.0", "2.12.0"]


def test_the_newest_two_of_more_runs_than_a_statement_has_parameters(database: Database) -> None:
    """PostgreSQL takes 65,535 values in a statement; a suite run hourly has that many in seven years."""
    save_trials(database, make_history(workloads=("mlp",), builds=("2.12.0", "2.13.0")))
    newest = newest_run(database, measured=True)
    of_pair = newest_two(database, newest.run_id, measured=True)
    for table in (RUN, RUN_PART):
        with database.write() as connection:
            connection.execute(_earlier_runs(table, newest.run_id, 66_000))
    assert newest_run(database, measured=True) == newest
    assert newest_two(database, newest.run_id, measured=True) == of_pair
    assert of_pair == (run_side("run-gpu-box-3-0-0001"), run_side("run-gpu-box-3-0-0000"))


def _earlier_runs(table: Table, run_id: str, count: int) -> Insert:
    """Copies of a row, before the whole history."""
    number = select(literal(1).label("number")).cte(recursive=True)
    number = number.union_all(select(number.c.number + 1).where(number.c.number < count))
    earlier = {name: literal(START - timedelta(hours=1)) for name in ("first_seen_at", "last_seen_at")}
    earlier |= {"run_id": cast(number.c.number, String)}
    rows = select(*(earlier.get(column.name, column) for column in table.c)).where(table.c.run_id == run_id)
    return insert(table).from_select(list(table.c), rows.join_from(table, number, true()))
