"""Runs: progress, queue, schedules and machines are those of the database, whatever their names hold."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from streamlit.testing.v1 import AppTest

from compilewatch.dashboard.links.links import Link, Page
from compilewatch.dashboard.pages.runs.content import progress_words
from compilewatch.db.engine.session import Database, open_database
from compilewatch.db.queries.facets import runs
from compilewatch.db.records.hosts import JobReport
from compilewatch.db.records.requests import RequestKind, RequestSpec, RunStatus, ScheduleSpec
from compilewatch.db.service.jobs import save_report
from compilewatch.db.service.requests import cancel_request, new_request, save_request
from compilewatch.db.service.schedules import pause_schedule, save_schedule
from compilewatch.db.store.trials import end_run, save_trials, start_run
from tests.builders import START, make_build, make_history, make_machine, make_trial
from tests.dashboard.conftest import Store, machine_ids, opened, texts

HOSTILE = "![x](http://evil.example/a.png) *bold* :smile:"
Write = Callable[[Database], object]


@pytest.fixture
def stored(store: Store) -> Callable[[Write], None]:
    """Two machines with a run each of 12 and of 4 trials; what a test writes goes on top."""
    gpu = make_history(workloads=("mlp", "bert-base"), builds=("2.13.0",), trials_per_case=3)
    cpu = make_history(
        workloads=("mlp",),
        builds=("2.12.0",),
        machines=(make_machine("cpu-box", device="cpu"),),
        trials_per_case=2,
        start=START - timedelta(days=2),
    )
    url = store([*gpu, *cpu])

    def write(change: Write) -> None:
        with open_database(url) as database:
            change(database)

    return write


def _announce(
    database: Database, planned: int | None = 48, label: str | None = None, at: datetime = START
) -> None:
    start_run(
        database,
        run_id="run-gpu-box-3-0-0000",
        suite="standard",
        label=label,
        started_at=at,
        planned_trials=planned,
    )


def _table(test: AppTest, column: str):
    return next(e.value for e in test.dataframe if column in e.value.columns)


def test_a_running_run_shows_stored_and_planned_trials(store: Store) -> None:
    now = datetime.now(UTC) - timedelta(minutes=30)
    url = store(
        make_history(workloads=("mlp", "bert-base"), builds=("2.13.0",), trials_per_case=3, start=now)
    )
    with open_database(url) as database:
        _announce(database, at=now)
    test = opened(Link(page=Page.RUNS))
    rows = _table(test, "run_id").set_index("run_id")
    run = rows.loc["run-gpu-box-3-0-0000"]
    assert (run["state"], run["trials"], run["progress"]) == ("▶ running", 12, 25.0)
    assert run["machine"].startswith("gpu-box-3")
    assert run["build"].startswith("torch 2.13.0")
    (bar,) = test.get("progress")
    assert bar.proto.value == 25
    assert "12 of 48 trials" in bar.proto.text


def test_the_list_of_runs_comes_first_and_says_how_each_ended(stored: Callable[[Write], None]) -> None:
    def ask(database: Database) -> None:
        asked = new_request("r", RequestKind.MANUAL, RequestSpec(), by="Ada", at=START)
        save_request(database, asked.model_copy(update={"run_ids": ("run-cpu-box-0-0000",)}))
        save_trials(database, [make_trial(run_id="run-cpu-box-0-0000", failure="crash")])

    stored(ask)
    test = opened(Link(page=Page.RUNS))
    assert [each.key for each in test.dataframe][:2] == ["runs-table", "runs-machines"]
    run = _table(test, "run_id").set_index("run_id").loc["run-cpu-box-0-0000"]
    assert (run["passed"], run["failed"], run["asked_by"]) == (4, 1, "Ada")
    assert run["took"] > 0


def test_an_ended_run_no_longer_runs(stored: Callable[[Write], None]) -> None:
    stored(_announce)
    stored(lambda db: end_run(db, "run-gpu-box-3-0-0000", START + timedelta(hours=1), RunStatus.FINISHED))
    test = opened(Link(page=Page.RUNS))
    assert "Nothing runs now" in texts(test)
    assert not test.get("progress")
    states = _table(test, "run_id").set_index("run_id")["state"]
    assert states["run-gpu-box-3-0-0000"] == "✓ finished"
    assert states["run-cpu-box-0-0000"] == "○ unannounced", "its trials are measured, whoever stored them"


def test_nothing_is_said_to_run_only_where_no_job_runs(stored: Callable[[Write], None]) -> None:
    serves = JobReport(process="0" * 32, sequence=1, job="serve", host="gpu-1")
    ended = serves.model_copy(update={"process": "1" * 32, "ended": True})
    stored(lambda db: save_report(db, ended, datetime.now(UTC)))
    assert "Nothing runs now" in texts(opened(Link(page=Page.RUNS)))
    stored(lambda db: save_report(db, serves, datetime.now(UTC)))
    test = opened(Link(page=Page.RUNS))
    assert "Nothing is measured now; 1 process of jobs in production runs" in texts(test)
    assert set(_table(test, "job")["job"]) == {"serve"}


def test_machine_and_suite_choose_runs(stored: Callable[[Write], None], sqlite_url: str) -> None:
    cpu = machine_ids(sqlite_url)["cpu-box"]
    test = opened(Link(page=Page.RUNS, machine=cpu))
    assert list(_table(test, "run_id")["run_id"]) == ["run-cpu-box-0-0000"]
    assert test.session_state["runs-table-values"] == [("run-cpu-box-0-0000", cpu)]
    assert len(_table(opened(Link(page=Page.RUNS)), "run_id")) == 2


def test_a_run_that_fell_silent_is_interrupted(stored: Callable[[Write], None], sqlite_url: str) -> None:
    """As one whose process was killed, or that was copied while it went on."""
    stored(_announce)
    test = opened(Link(page=Page.RUNS))
    assert "Nothing runs now" in texts(test)
    states = _table(test, "run_id").set_index("run_id")["state"]
    assert states["run-gpu-box-3-0-0000"] == "■ interrupted"
    with open_database(sqlite_url, read_only=True) as database:
        assert "interrupted" in set(runs(database)["status"])


def test_a_running_run_says_what_it_has_done_and_what_is_left() -> None:
    row = {
        "suite": "standard",
        "trials": 3,
        "planned": 12,
        "failed": 1,
        "started_at": START,
        "last_seen_at": START + timedelta(minutes=5),
    }
    soon = progress_words(row)
    # 5 minutes for 3 trials, 9 to go
    assert soon == "standard: 3 of 12 trials, 1 failed; about 15.0 min left at this pace"
    unplanned = progress_words({**row, "planned": None})
    assert unplanned == "standard: 3 trials, 1 failed"


def test_cancelled_trials_are_counted_apart_from_failed_ones(stored: Callable[[Write], None]) -> None:
    before = opened(Link(page=Page.RUNS))
    assert all("cancelled" not in frame.value for frame in before.dataframe)

    def stop(database: Database) -> None:
        stopped = [make_trial(run_id="stopped", failure=kind) for kind in ("cancelled", "cancelled", "crash")]
        save_trials(database, stopped)

    stored(stop)
    page = opened(Link(page=Page.RUNS))
    runs = _table(page, "run_id").set_index("run_id")
    assert (runs.loc["stopped", "failed"], runs.loc["stopped", "cancelled"]) == (1, 2)
    machines = _table(page, "machine_id").set_index("machine")
    assert machines.loc["gpu-box-3", "cancelled"] == 2


def test_builds_are_named_by_what_differs_on_their_machine(store: Store) -> None:
    """Not by what differs from the same torch on another machine."""
    store(
        make_trial(machine=make_machine(name, device_name=name), build=make_build(driver=driver), run_id=name)
        for name, driver in (("gpu-box-3", "570.1"), ("cpu-box", "580.1"))
    )
    assert list(_table(opened(Link(page=Page.RUNS)), "run_id")["build"]) == ["torch 2.13.0"] * 2


def test_the_queue_shows_what_waits_and_how_requests_ended(stored: Callable[[Write], None]) -> None:
    now = datetime.now(UTC)

    def ask(database: Database) -> None:
        for name, kind, spec in (
            ("later", RequestKind.SCHEDULE, RequestSpec(suite="full")),
            ("first", RequestKind.CONFIRMATION, RequestSpec(cases=(("mlp", "default"),))),
            ("gone", RequestKind.MANUAL, RequestSpec(suite="smoke")),
        ):
            save_request(database, new_request(name, kind, spec, by=HOSTILE, at=now, note=HOSTILE))
        cancel_request(database, "gone", by="Ada", at=now)

    stored(ask)
    rows = _table(opened(Link(page=Page.RUNS)), "asked_by")
    assert list(zip(rows["request_id"], rows["state"], strict=True)) == [
        ("first", "queued"),
        ("later", "queued"),
        ("gone", "cancelled"),
    ]
    assert rows["what"][0] == "mlp with default"


def test_schedules_show_whether_they_fire(stored: Callable[[Write], None]) -> None:
    def plan(database: Database) -> None:
        for name in ("nightly", "weekly"):
            save_schedule(database, name, ScheduleSpec(cron="0 2 * * *", suite="standard"), at=START)
        pause_schedule(database, "weekly", by="Ada", at=START)

    stored(plan)
    rows = _table(opened(Link(page=Page.RUNS)), "cron").set_index("name")
    assert rows["state"].to_dict() == {"nightly": "▶ active", "weekly": "‖ paused"}


def test_names_from_outside_stay_text(store: Store) -> None:
    named = {"run_id": HOSTILE, "suite": HOSTILE, "label": HOSTILE}
    with open_database(store([make_trial(machine=make_machine(HOSTILE), suite=HOSTILE)])) as database:
        start_run(database, **named, started_at=datetime.now(UTC), planned_trials=3)
    test = opened(Link(page=Page.RUNS))
    (bar,) = test.get("progress")
    kinds = (test.markdown, test.caption, test.info)
    said = [bar.proto.text, *(str(element.value) for kind in kinds for element in kind)]
    assert not [text for text in said if "](http" in text]
