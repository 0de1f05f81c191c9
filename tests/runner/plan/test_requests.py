"""A request that is cancelled while it is planned: its planning ends, and no thread or process is left."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from compilewatch.db.engine.session import Database
from compilewatch.db.records.requests import Limits, RequestState
from compilewatch.db.service.requests import cancel_request
from compilewatch.runner.config.settings import BuildSettings, Settings
from compilewatch.runner.plan import builds
from compilewatch.runner.plan.cancellation import check_cancelled
from compilewatch.runner.plan.interpreter import InterpreterFacts, check_interpreter
from compilewatch.runner.service import keeper
from tests.runner.fleet_processes import is_alive, wait_until
from tests.runner.service.test_service import FACTS, NOW, Measuring, ask, serving, wait_for

# Ten times what it takes beside other load; planning itself would take minutes.
BOUND_S = 20.0


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeper, "POLL_S", 0.05)


def test_an_interpreter_that_never_answers_holds_no_thread(sqlite_database: Database, tmp_path: Path) -> None:
    python, started = tmp_path / "python", tmp_path / "started"
    # The sleep is a child of its own, which holds the pipe of its parent.
    python.write_text(f"#!/bin/sh\nsleep 600 & echo $$ $! >> {started}\nwait\n")
    python.chmod(0o755)
    settings = Settings(
        data_dir=tmp_path / "data",
        service={"watch_builds": False},
        build=(BuildSettings(name="stuck", python=python),),
    )
    check_interpreter.cache_clear()
    before = set(threading.enumerate())
    ask(sqlite_database, "one")
    with serving(sqlite_database, settings, Measuring()):
        wait_for(sqlite_database, "one", RequestState.RUNNING)
        # What looks ahead asks the same interpreter.
        wait_until(lambda: started.exists() and len(started.read_text().split()) == 4, BOUND_S, "two ask")
        pids = [int(pid) for pid in started.read_text().split()]
        assert all(map(is_alive, pids))
        cancel_request(sqlite_database, "one", by="bob", at=NOW)
        wait_for(sqlite_database, "one", RequestState.CANCELLED, BOUND_S)
        wait_until(lambda: sum(map(is_alive, pids)) == 2, BOUND_S, "planning does not end")
    wait_until(lambda: not any(map(is_alive, pids)), BOUND_S, "a process is left")
    wait_until(lambda: set(threading.enumerate()) <= before, BOUND_S, "a thread is left")


def test_a_long_plan_is_not_made_to_its_end(
    sqlite_database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def facts(_python: str) -> InterpreterFacts:
        return FACTS

    monkeypatch.setattr(builds, "check_interpreter", facts)
    planned = threading.Event()

    def noticed() -> None:
        planned.set()
        check_cancelled()

    monkeypatch.setattr("compilewatch.runner.plan.plan.check_cancelled", noticed)
    limits = Limits(trials=10**9)
    settings = Settings(data_dir=tmp_path / "data", service={"watch_builds": False}, limits=limits)
    before = set(threading.enumerate())
    ask(sqlite_database, "one", trials=10**9)
    measure = Measuring()
    with serving(sqlite_database, settings, measure):
        assert planned.wait(BOUND_S)
        cancel_request(sqlite_database, "one", by="bob", at=NOW)
        wait_for(sqlite_database, "one", RequestState.CANCELLED, BOUND_S)
        ask(sqlite_database, "two")
        wait_for(sqlite_database, "two", RequestState.FINISHED)
    assert [len(plan.trials) for plan in measure.plans] == [3]
    wait_until(lambda: set(threading.enumerate()) <= before, BOUND_S, "a thread is left")
