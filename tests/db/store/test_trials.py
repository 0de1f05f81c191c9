"""What is saved: once, whole, exactly, and counted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from statistics import stdev

import pytest
from hypothesis import HealthCheck, given, settings
from sqlalchemy import select

from compilewatch.db.engine.session import Database
from compilewatch.db.engine.tables import TRIAL
from compilewatch.db.errors import ConflictError, NotFoundError
from compilewatch.db.queries.data_version import data_version
from compilewatch.db.queries.facets import machines, runs, workloads
from compilewatch.db.queries.trials import latest_trials_frame, trial_record, trial_records, trials_frame
from compilewatch.db.records.ids import machine_identity
from compilewatch.db.records.requests import RunStatus
from compilewatch.db.records.trial import FailureKind, Trial, parse_trial
from compilewatch.db.store.trials import end_run, save_trial, save_trials, start_run
from tests.builders import MS, START, make_build, make_compiler_facts, make_history, make_machine, make_trial
from tests.few_examples import FEW
from tests.record_strategies import trials


@settings(
    FEW,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(drawn=trials())
def test_any_valid_trial_comes_back_as_it_was(database: Database, drawn: Trial) -> None:
    trial = drawn.model_copy(update={"trial_id": f"{len(trials_frame(database)):04d}.{drawn.trial_id[:50]}"})
    save_trial(database, trial)
    found = trial_record(database, trial.trial_id)
    assert found == trial
    assert found.model_dump_json(exclude={"strategy": {"options"}}) == trial.model_dump_json(
        exclude={"strategy": {"options"}}
    )
    assert save_trial(database, found) is False


def test_numbers_keep_their_type_and_value(database: Database) -> None:
    """jsonb would give 10**23 for 1e23 and 1 for 1.0."""
    options = {"huge": 1e23, "one": 1.0, "zero": -0.0, "tiny": 5e-324, "whole": 2**63 - 1}
    trial = make_trial(build=make_build(settings=options))
    save_trial(database, trial)
    found = trial_record(database, trial.trial_id).build.settings
    assert {name: repr(value) for name, value in found.items()} == {
        name: repr(value) for name, value in options.items()
    }


def test_the_spread_of_samples_is_that_of_an_exact_sum(sqlite_database: Database) -> None:
    """Of long times that are nearly alike a sum of squares in floats has lost all of it."""
    samples = [2**50 + each for each in (0, 3, 1, 7, 4)]
    save_trial(sqlite_database, make_trial(samples_ns=samples))
    assert sqlite_database.scalars(select(TRIAL.c.latency_sd_ns)) == [
        pytest.approx(stdev(samples), rel=1e-15)
    ]


def test_a_power_limit_of_minus_zero_is_zero_and_the_same_machine(database: Database) -> None:
    """SQLite keeps no sign of zero in a column of numbers, and the machine's id follows from the text."""
    told = make_trial().to_json().replace('"power_limit_w":700.0', '"power_limit_w":-0.0')
    trial = parse_trial(told, where="here")
    save_trial(database, trial)
    found = trial_record(database, trial.trial_id)
    assert found.to_json() == trial.to_json()
    assert repr(found.machine.power_limit_w) == "0.0"
    plain = trial.machine.model_copy(update={"power_limit_w": 0.0})
    assert len({machine_identity(each) for each in (found.machine, trial.machine, plain)}) == 1


def test_saving_twice_is_saving_once(database: Database) -> None:
    trial = make_trial()
    save_trial(database, trial)
    version = data_version(database)
    assert save_trial(database, Trial.model_validate_json(trial.to_json())) is False
    assert data_version(database) == version
    assert len(trials_frame(database)) == 1
    assert machines(database)["trials"].tolist() == [1]


def test_an_id_with_other_content_is_refused_and_changes_nothing(database: Database) -> None:
    first = make_trial(run_id="run-1")
    save_trial(database, first)
    version = data_version(database)
    other = first.model_copy(update={"run_id": "run-2", "samples_ns": [1, 2, 3]})
    with pytest.raises(ConflictError) as caught:
        save_trials(database, [make_trial(), other, make_trial()])
    for part in (first.trial_id, "run-1", "run-2", "samples_ns"):
        assert part in str(caught.value)
    assert data_version(database) == version
    assert list(trial_records(database)) == [first]


def test_two_contents_under_one_id_in_one_import_are_refused(database: Database) -> None:
    first = make_trial()
    with pytest.raises(ConflictError, match=r"different content in label\."):
        save_trials(database, [first, first.model_copy(update={"label": "other"})])
    assert trials_frame(database).empty


@pytest.mark.parametrize("batch", [1, 2, 7, 1000])
def test_the_size_of_a_batch_changes_nothing(database: Database, batch: int) -> None:
    history = make_history(builds=("2.12.0", "2.13.0"), trials_per_case=2)
    assert save_trials(database, [*history, *history[:5]], batch=batch) == (len(history), 5)
    assert sorted(trial_records(database), key=lambda trial: trial.trial_id) == sorted(
        history, key=lambda trial: trial.trial_id
    )
    assert machines(database)["trials"].tolist() == [len(history)]


def test_an_import_that_breaks_off_leaves_nothing(database: Database) -> None:
    def broken() -> Iterator[Trial]:
        yield from make_history(builds=("2.13.0",))
        raise RuntimeError("line 12 is no record")

    version = data_version(database)
    with pytest.raises(RuntimeError, match="line 12"):
        save_trials(database, broken(), batch=2)
    assert trials_frame(database).empty
    assert machines(database).empty
    assert data_version(database) == version


def test_nothing_to_save_is_no_write(database: Database) -> None:
    version = data_version(database)
    assert save_trials(database, []) == (0, 0)
    assert data_version(database) == version


def test_each_trial_keeps_the_names_it_was_given(database: Database) -> None:
    """Name, device and label are no part of an identity, so one machine and one build can have several."""
    first = make_trial(machine=make_machine("old-name"), build=make_build(label="before"))
    second = make_trial(
        machine=make_machine("new-name", device_uuid="GPU-2"),
        build=make_build(label=None),
        started_at=START + timedelta(days=1),
    )
    save_trials(database, [second, first])
    assert trial_record(database, first.trial_id) == first
    assert trial_record(database, second.trial_id) == second
    assert machines(database)["machine"].tolist() == ["new-name"]


def test_tallies_count_what_is_stored(database: Database) -> None:
    history = make_history(builds=("2.12.0", "2.13.0"), failures=[("bert-base", "default", 1)])
    save_trials(database, history[:7])
    save_trials(database, history[5:])
    frame = trials_frame(database)
    by_workload = workloads(database).set_index("workload")
    expected = frame.groupby("workload").agg(
        trials=("trial_id", "size"),
        failed_trials=("status", lambda status: (status == "failed").sum()),
        first_seen_at=("started_at", "min"),
        last_seen_at=("started_at", "max"),
    )
    for column in expected:
        assert by_workload[column].to_dict() == expected[column].to_dict()
    assert runs(database)["trials"].tolist() == [12, 12]
    assert runs(database)["failed_trials"].sum() == 3


def test_more_events_than_a_column_holds_are_capped(database: Database) -> None:
    breaks = [{"reason": "x", "count": 2**63 - 1}, {"reason": "y", "count": 5}]
    trial = make_trial(compiler=make_compiler_facts(graph_breaks=breaks))
    save_trial(database, trial)
    assert trials_frame(database)["graph_breaks"].tolist() == [2**63 - 1]
    assert trial_record(database, trial.trial_id) == trial


class TestLatest:
    @pytest.mark.parametrize("order", [lambda history: history, lambda history: history[::-1]])
    def test_is_the_newest_run_in_whatever_order_trials_arrive(
        self, database: Database, order: Callable[[list[Trial]], list[Trial]]
    ) -> None:
        for trial in order(make_history(trials_per_case=2)):
            save_trial(database, trial)
        latest = latest_trials_frame(database)
        assert set(latest["run_id"]) == {"run-gpu-box-3-0-0002"}
        assert len(latest) == 8

    def test_shows_a_failure_of_the_newest_run(self, database: Database) -> None:
        save_trials(database, make_history(failures=[("bert-base", "default", 2)]))
        latest = latest_trials_frame(database)
        failed = latest[latest["status"] == "failed"]
        assert set(failed["workload"]) == {"bert-base"}
        assert set(failed["failure_kind"]) == {"out_of_memory"}
        assert failed["latency_ns"].isna().all()

    def test_a_cancelled_trial_makes_no_run_the_newest(self, database: Database) -> None:
        measured = make_trial(run_id="run-1")
        cancelled = make_trial(
            run_id="run-2", failure=FailureKind.CANCELLED, started_at=START + timedelta(days=1)
        )
        save_trials(database, [measured, cancelled])
        assert latest_trials_frame(database)["trial_id"].tolist() == [measured.trial_id]

    def test_runs_that_started_together_have_one_newest_in_either_order(self, database: Database) -> None:
        first, second = make_trial(run_id="run-a"), make_trial(run_id="run-b")
        save_trial(database, second)
        save_trial(database, first)
        assert latest_trials_frame(database)["run_id"].tolist() == ["run-b"]


class TestRuns:
    def test_an_announced_run_is_listed_before_its_first_trial(self, database: Database) -> None:
        announce(database, started_at=datetime.now(UTC))
        row = runs(database).iloc[0]
        assert (row["run_id"], row["status"], row["planned_trials"], row["trials"]) == (
            "run-1",
            "running",
            6,
            0,
        )

    def test_announcing_and_ending_twice_is_once(self, database: Database) -> None:
        announce(database)
        end_run(database, "run-1", START + timedelta(hours=1), RunStatus.FINISHED)
        version = data_version(database)
        announce(database)
        end_run(database, "run-1", START + timedelta(hours=1), RunStatus.FINISHED)
        assert data_version(database) == version
        row = runs(database).iloc[0]
        assert (row["status"], row["ended_at"]) == ("finished", START + timedelta(hours=1))

    def test_announcing_other_content_under_a_known_id_is_refused(self, database: Database) -> None:
        announce(database)
        with pytest.raises(ConflictError, match="run-1"):
            announce(database, planned_trials=7)

    def test_an_announcement_may_come_after_the_first_trial(self, database: Database) -> None:
        now = datetime.now(UTC)
        save_trial(database, make_trial(run_id="run-1", started_at=now, ended_at=now))
        announce(database, started_at=now)
        row = runs(database).iloc[0]
        assert (row["status"], row["planned_trials"], row["trials"]) == ("running", 6, 1)

    def test_ending_a_run_nobody_knows_is_an_error(self, database: Database) -> None:
        with pytest.raises(NotFoundError, match="run-9"):
            end_run(database, "run-9", START, RunStatus.FINISHED)


def announce(database: Database, planned_trials: int = 6, started_at: datetime = START) -> None:
    start_run(
        database,
        run_id="run-1",
        suite="smoke",
        label=None,
        started_at=started_at,
        planned_trials=planned_trials,
    )


def test_every_write_moves_the_data_version(database: Database) -> None:
    seen = [data_version(database)]
    announce(database)
    seen.append(data_version(database))
    save_trial(database, make_trial(run_id="run-1", latency_ns=9 * MS))
    seen.append(data_version(database))
    end_run(database, "run-1", START, RunStatus.CANCELLED)
    seen.append(data_version(database))
    assert seen == sorted(set(seen))


def test_a_trial_nobody_knows_is_not_found(database: Database) -> None:
    with pytest.raises(NotFoundError, match="nope"):
        trial_record(database, "nope")


def test_a_batch_that_tells_a_known_workloads_series_before_a_new_workload_comes_in(
    database: Database,
) -> None:
    trials = [
        make_trial(workload=workload, strategy=strategy, trial_id=f"t{number}")
        for number, (workload, strategy) in enumerate(
            [("mlp", "eager"), ("mlp", "default"), ("mlp", "max-autotune"), ("cnn", "eager")]
        )
    ]
    assert save_trials(database, trials, batch=2) == (4, 0)
