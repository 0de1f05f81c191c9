"""Operators ask, cancel, pause and resume from the Runs page; nobody else can, whatever the page offers."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from compilewatch.dashboard.document.content import Table
from compilewatch.dashboard.document.page import render
from compilewatch.dashboard.links.links import Link, Page, href
from compilewatch.dashboard.pages.runs.fleet import liveness
from compilewatch.dashboard.read.database import VARIABLE
from compilewatch.dashboard.reports.freeze import freeze_link
from compilewatch.dashboard.write import writing
from compilewatch.db import units
from compilewatch.db.engine.session import open_database
from compilewatch.db.errors import ConfigError, NotFoundError
from compilewatch.db.judge.statistics.noise_floor import VALIDATION_SUITE
from compilewatch.db.records.hosts import SILENT_AFTER, HostState
from compilewatch.db.records.requests import RequestKind, RequestSpec, RequestState, Schedule, ScheduleSpec
from compilewatch.db.service.hosts import save_host
from compilewatch.db.service.requests import requests
from compilewatch.db.service.schedules import SCHEDULES, note_next_runs, save_schedule
from tests.builders import MS, START, make_history, make_trial
from tests.dashboard.conftest import Store, opened, texts

NOW = datetime(2026, 11, 20, 20, 0, tzinfo=UTC)
NIGHTLY = ScheduleSpec(cron="0 2 * * *", suite="standard", trials=5, machine="gpu-*")


@pytest.fixture
def url(store: Store) -> str:
    noisy = [
        make_trial(
            workload="encoder",
            strategy="eager",
            suite=VALIDATION_SUITE,
            run_id="run-noise",
            trial_id=f"noise-{number}",
            started_at=START + timedelta(minutes=number),
            latency_ns=10 * MS * (1 + 0.01 * (number % 3)),
            spread=0.0,
        )
        for number in range(6)
    ]
    url = store([*make_history(workloads=("mlp",), builds=("2.13.0",)), *noisy])
    with open_database(url) as database:
        save_schedule(database, "nightly", NIGHTLY, at=NOW)
        note_next_runs(database, "nightly", [NOW + timedelta(days=day) for day in range(1, 6)])
    return url


def stored_schedule(url: str) -> Schedule:
    with open_database(url, read_only=True) as database:
        (schedule,) = SCHEDULES.all(database)
    return schedule


def test_run_now_queues_what_the_schedule_measures(url: str) -> None:
    said = writing.run_now(stored_schedule(url), by="Ann")
    with open_database(url, read_only=True) as database:
        (request,) = requests(database)
    assert request.request_id in said
    assert (request.kind, request.asked_by) == (RequestKind.MANUAL, "Ann")
    assert request.spec == RequestSpec(suite="standard", trials=5, machine="gpu-*")
    assert request.history[0].note == "schedule nightly, run now"
    assert writing.cancel_run(request.request_id, by="Bob").endswith("is cancelled.")
    with open_database(url, read_only=True) as database:
        (request,) = requests(database)
    assert (request.state, request.history[-1].by) == (RequestState.CANCELLED, "Bob")


@pytest.mark.parametrize(
    ("limits", "asked", "said"),
    [
        ("{}", {"trials": 99_999_999}, "99,999,999 trials; at most 20,000"),
        ('{"trials": 50}', {"trials": 26, "builds": ("a", "b")}, "52 trials; at most 50"),
        ('{"builds": 2}', {"builds": ("a", "b", "c")}, "3 builds; at most 2"),
        ('{"cases": 3}', {"workloads": ("a", "b"), "strategies": ("c", "d")}, "4 cases; at most 3"),
    ],
)
def test_what_asks_for_too_much_is_not_queued(
    limits: str, asked: dict[str, object], said: str, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, f'{{"limits": {limits}}}')
    with pytest.raises(ConfigError, match=said):
        writing.request_run(RequestSpec.model_validate(asked), by="Ann")
    with open_database(url, read_only=True) as database:
        assert requests(database) == []


def test_a_pause_says_by_whom(url: str) -> None:
    assert writing.set_paused("nightly", paused=True, by="Ann") == "Schedule nightly is paused."
    assert writing.set_paused("nightly", paused=True, by="Bob") == "Schedule nightly was paused already."
    paused = stored_schedule(url)
    assert (paused.paused, paused.changed_by, paused.upcoming) == (True, "Ann", None)
    assert writing.set_paused("nightly", paused=False, by="Bob") == "Schedule nightly is active."
    assert stored_schedule(url).changed_by == "Bob"
    with pytest.raises(NotFoundError, match="no schedule 'weekly'"):
        writing.set_paused("weekly", paused=True, by="Ann")


@pytest.mark.usefixtures("viewer", "url")
def test_who_is_no_operator_is_offered_nothing() -> None:
    test = opened(Link(page=Page.RUNS))
    assert not [button for button in test.button if button.key in {"ask-yes", "run-now-yes", "pause-yes"}]


def test_the_page_asks_for_workloads_strategies_and_trials(url: str) -> None:
    test = opened(Link(page=Page.RUNS))
    test.text_input("ask-name").input("Ann")
    test.multiselect("ask-workloads").set_value(["mlp"])
    test.multiselect("ask-strategies").set_value(["eager", "default"])
    test.number_input("ask-trials").set_value(7)
    test.button("ask-yes").click().run()
    with open_database(url, read_only=True) as database:
        (request,) = requests(database)
    assert request.spec == RequestSpec(workloads=("mlp",), strategies=("eager", "default"), trials=7)


def test_what_nobody_serves_says_so_at_once_and_on_its_row(url: str) -> None:
    said = writing.request_run(RequestSpec(machine="gpu-9"), by="Ann")
    assert "No service runs for gpu-9" in said
    now = datetime.now(UTC)
    with open_database(url) as database:
        save_host(database, host(name="spare", seen_at=now, started_at=now))
        save_host(database, host(name="gone", seen_at=now - 2 * SILENT_AFTER))
    assert "Nobody serves gpu-*" in writing.request_run(RequestSpec(machine="gpu-*"), by="Ann")
    assert "Nobody serves gone" in writing.request_run(RequestSpec(machine="gone"), by="Ann")
    for machine in (None, "spare", "sp*"):
        assert "measures it next" in writing.request_run(RequestSpec(machine=machine), by="Ann")
    page = opened(Link(page=Page.RUNS))
    queue = next(each.value for each in page.dataframe if "unserved" in each.value.columns)
    told = dict(zip(queue["machine"], queue["unserved"], strict=True))
    assert "Nobody serves gpu-9" in told["gpu-9"]
    assert "Now running: spare." in told["gone"]


def test_the_page_asks_once_and_says_what_came_of_it(url: str) -> None:
    test = opened(Link(page=Page.RUNS))
    test.button("ask-yes").click().run()
    assert "Type your name" in texts(test)
    test.text_input("ask-name").input("Ann").run()
    test.button("ask-yes").click().run()
    assert "Queued as" in "".join(element.value for element in test.success)
    with open_database(url, read_only=True) as database:
        (request,) = requests(database)
    assert (request.asked_by, request.spec) == ("Ann", RequestSpec())


def host(**changes: object) -> HostState:
    fields = {
        "name": "gpu-box-3",
        "owner": "gpu-box-3:1",
        "started_at": NOW - timedelta(days=1),
        "seen_at": NOW,
        "program_version": "1.0",
        "free_bytes": 2**40,
        "total_bytes": 2**41,
    }
    return HostState.model_validate(fields | changes)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, "● running"),
        ({"seen_at": NOW - SILENT_AFTER - timedelta(minutes=55)}, "✗ silent for 1.00 h"),
        ({"stopped_at": NOW + timedelta(seconds=1)}, "○ stopped"),
    ],
)
def test_whether_a_service_lives(changes: dict[str, object], words: str) -> None:
    here = host(**changes)
    assert liveness(here.seen_at, here.stopped_at, NOW) == words


def test_a_report_of_runs_keeps_queue_schedules_and_machines(url: str) -> None:
    writing.run_now(stored_schedule(url), by="Ann")
    content = freeze_link(href(Link(page=Page.RUNS)), title=None, by="ann", at=NOW)
    tables = {part.title: part for part in content.sections if isinstance(part, Table)}
    assert set(tables) >= {"Queue", "Schedules", "Machines", "Runs, newest first"}
    (asked,) = tables["Queue"].rows
    assert {"queued", "suite standard, 5 trials", "Ann", "schedule nightly, run now"} <= set(asked)
    (planned,) = tables["Schedules"].rows
    assert {"nightly", "▶ active", units.moment(NOW + timedelta(days=1))} <= set(planned)
    assert "latency 2.50 %" in tables["Machines"].rows[0]
    assert "NaN" not in render(content)
    assert "NaT" not in render(content)
