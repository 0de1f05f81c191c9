"""What the trials of a case in a run come to, kept at write time: always what the trials themselves say."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pandas as pd
import pytest
from sqlalchemy import text, update

from compilewatch.db.columns.case import CASE_KEYS
from compilewatch.db.columns.metrics import POINT_COLUMNS
from compilewatch.db.engine.session import Database, open_database
from compilewatch.db.engine.tables import DATA_VERSION
from compilewatch.db.errors import DatabaseError
from compilewatch.db.metrics.trend import series_points
from compilewatch.db.queries.history_points import known_columns, points_by_build, points_by_run
from compilewatch.db.queries.selection import Filters
from compilewatch.db.queries.trials import trials_frame
from compilewatch.db.records.trial import SourceKind, Status, Task, Trial
from compilewatch.db.service.integrity import find_damage
from compilewatch.db.store.backup import copy_database
from compilewatch.db.store.removal import remove_trials
from compilewatch.db.store.trial_writer import bring_up, rebuild
from compilewatch.db.store.trials import save_trial, save_trials
from tests.builders import START, make_build, make_history, make_imported, make_trial

SELECTIONS = [
    Filters(),
    Filters(suites=("standard",)),
    Filters(tasks=(Task.TRAINING,)),
    Filters(workloads=("mlp",), machines=("none such",)),
    Filters(sources=(SourceKind.IMPORTED,)),
    Filters(since=START + timedelta(days=0.5), until=START + timedelta(days=1.5)),
]


def _trials() -> list[Trial]:
    """Two machines, a build that two runs measured, failures, other settings in one run, an import."""
    builds = ("2.11.0", "2.12.0", "2.12.0", "2.13.0")
    other = make_build("2.13.0", settings={"skip_cudnn": "1"})
    return [
        *make_history(workloads=("bert-base", "mlp"), builds=builds, failures=[("mlp", "default", 1)]),
        *make_history(workloads=("mlp",), builds=("2.12.0",), machines=("gpu-box-1",), seed=1),
        *make_history(workloads=("mlp",), builds=(other,), start=START + timedelta(days=3), seed=0)[:4],
        make_trial(failure="cancelled"),
        make_imported(),
    ]


@pytest.fixture(scope="module")
def measured(module_database: Database) -> Database:
    trials = {trial.trial_id: trial for trial in _trials()}
    save_trials(module_database, list(trials.values())[::2])
    for trial in list(trials.values())[1::2]:
        save_trial(module_database, trial)
    return module_database


def in_order(points: pd.DataFrame) -> pd.DataFrame:
    return points.sort_values(["last_started_at", *CASE_KEYS, "run_id"], ignore_index=True)


def expect_what_trials_say(database: Database, filters: Filters = Filters()) -> None:  # noqa: B008
    trials = trials_frame(database, filters)
    pd.testing.assert_frame_equal(
        points_by_run(database, filters), in_order(series_points(trials)), check_exact=True
    )
    pd.testing.assert_frame_equal(
        points_by_build(database, filters), in_order(series_points(trials, by="build")), check_exact=True
    )


@pytest.mark.parametrize("filters", SELECTIONS, ids=repr)
def test_points_are_those_of_the_trials(filters: Filters, measured: Database) -> None:
    expect_what_trials_say(measured, filters)
    assert find_damage(measured) == []


def test_a_point_has_one_kind_of_conditions(measured: Database) -> None:
    points = points_by_run(measured, Filters(workloads=("mlp",), strategies=("default",)))
    settings = points.assign(settings=points["settings"].map(repr)).groupby("run_id")["settings"]
    assert settings.nunique().max() == settings.size().max() == 2


@pytest.mark.parametrize("read", [points_by_run, points_by_build])
def test_a_point_is_the_same_whatever_strategies_are_asked_for(
    database: Database, read: Callable[..., pd.DataFrame]
) -> None:
    """Break-even takes the eager of all processes of a workload; two runs measured this build."""
    save_trials(database, make_history(workloads=("mlp",), builds=("2.12.0", "2.12.0"), between_trials=0.1))
    whole, alone = read(database), read(database, Filters(strategies=("default",)))
    mine = whole[whole["strategy"] == "default"].reset_index(drop=True)
    assert mine["break_even_steps"].notna().all()
    pd.testing.assert_frame_equal(alone, mine, check_exact=True)


def test_some_columns_are_those_of_all(measured: Database) -> None:
    names = ["speedup", "torch", "workload", "run_id"]
    for read in (points_by_run, points_by_build):
        pd.testing.assert_frame_equal(read(measured, Filters(), names), read(measured)[names])


def test_without_trials_there_is_no_point(database: Database) -> None:
    assert list(points_by_run(database)) == list(points_by_build(database)) == list(POINT_COLUMNS)


def test_a_status_is_of_a_trial(measured: Database) -> None:
    with pytest.raises(ValueError, match="status"):
        points_by_run(measured, Filters(statuses=(Status.FAILED,)))


def test_trials_that_are_taken_out_leave_their_points(database: Database) -> None:
    trials = make_history(workloads=("mlp",), builds=("2.11.0", "2.12.0"))
    save_trials(database, trials)
    remove_trials(database, [trial.trial_id for trial in trials[:7]])
    assert len(points_by_run(database)) == 2
    expect_what_trials_say(database)
    assert find_damage(database) == []


def test_a_copy_has_them(sqlite_database: Database, empty_database_url: str) -> None:
    save_trials(sqlite_database, make_history())
    copy_database(sqlite_database.url, empty_database_url)
    with open_database(empty_database_url, read_only=True) as copied:
        expect_what_trials_say(copied)


@pytest.mark.parametrize("makes_anew", ["opening", "next trial", "check"])
def test_those_of_another_release_are_not_shown_and_made_anew(makes_anew: str, database: Database) -> None:
    save_trials(database, make_history())
    with database.write() as connection:
        connection.execute(update(DATA_VERSION).values(run_case_edition=0))
        connection.execute(text("ALTER TABLE run_case DROP COLUMN speedup"))
    with pytest.raises(DatabaseError, match="another release") as caught:
        points_by_run(database)
    assert "compilewatch db upgrade" in caught.value.next_step
    if makes_anew == "opening":
        bring_up(database)
    elif makes_anew == "check":
        rebuild(database)
    else:
        save_trial(database, make_imported())
    expect_what_trials_say(database)


def test_a_column_is_known_where_a_point_let_through_has_a_value(measured: Database) -> None:
    names = ("latency_ns", "device_ns", "energy_per_step_j")
    assert known_columns(measured, Filters(), names) == {"latency_ns"}
    assert known_columns(measured, Filters(workloads=("none such",)), names) == set()
