"""Runs and requests over random kills, take-overs and cancellations: what is stored agrees at rest."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from sqlalchemy import func, select

from compilewatch.db.engine.session import Database
from compilewatch.db.engine.tables import RUN, TRIAL
from compilewatch.db.records.requests import (
    REQUEST_TRANSITIONS,
    RUN_TRANSITIONS,
    RequestKind,
    RequestSpec,
    RequestState,
    RunRequest,
    RunStatus,
)
from compilewatch.db.records.trial import FailureKind, Trial
from compilewatch.db.service.requests import (
    beat_request,
    cancel_request,
    end_request,
    new_request,
    note_runs,
    release_request,
    run_request,
    running_requests,
    save_request,
    take_request,
)
from compilewatch.db.store.trials import end_run, save_trial, start_run
from tests.builders import make_failure, make_trial

START = datetime(2026, 11, 20, 3, 0, tzinfo=UTC)
PLANNED = 3
# `make fuzz` walks as many more ways through the states as it tries more of anything else.
EXAMPLES = max(2, int(os.environ.get("COMPILEWATCH_FUZZ_EXAMPLES", "0")) // 10)
OWNERS = st.sampled_from(("boss:1", "boss:2", "gpu:1", "gpu:2"))
_numbers = itertools.count()


@dataclass
class Work:
    """What a service holds in memory of the request that it measures; gone where it is killed."""

    request: RunRequest
    run_id: str
    measured: int = 0


@dataclass
class Waiting:
    """What lies on the disk of a host: it survives every kill, and comes in late or at once."""

    trials: list[Trial] = field(default_factory=list)
    ends: list[tuple[str, datetime, RunStatus]] = field(default_factory=list)


class States(RuleBasedStateMachine):
    """Two services of a fleet (boss), which continue each other's runs, and two that begin anew (gpu)."""

    database: Database

    def __init__(self) -> None:
        super().__init__()
        self.example = next(_numbers)
        self.minutes = 0
        self.names: list[str] = []
        self.runs: set[str] = set()
        self.work: dict[str, Work] = {}
        self.waiting = Waiting()
        self.whole: set[str] = set()

    def now(self) -> datetime:
        """Moments that mostly grow: every seventh time the clock was set back by an hour."""
        self.minutes += 1
        back = timedelta(hours=1) if self.minutes % 7 == 0 else timedelta(0)
        return START + timedelta(minutes=self.minutes) - back

    def fits(self, request: RunRequest) -> bool:
        return request.request_id in self.names

    @initialize()
    def begin(self) -> None:
        self.ask()
        self.take("gpu:1")

    @rule()
    def ask(self) -> None:
        name = f"q{self.example}-{len(self.names)}"
        spec = RequestSpec(suite="smoke")
        save_request(self.database, new_request(name, RequestKind.MANUAL, spec, by="ann", at=self.now()))
        self.names.append(name)

    @rule(owner=OWNERS)
    def take(self, owner: str) -> None:
        if owner in self.work:
            return
        goes_on = owner.startswith("boss")
        request = take_request(self.database, owner=owner, at=self.now(), fits=self.fits, counts=not goes_on)
        if request is None:
            return
        run_id = f"{request.request_id}-run" if goes_on else f"{request.request_id}-{next(_numbers)}"
        self.work[owner] = Work(request, run_id)
        assert note_runs(self.database, request.request_id, [run_id], owner=owner, at=self.now())
        if run_id not in self.runs:
            announced: dict[str, Any] = {"suite": "smoke", "label": None, "planned_trials": PLANNED}
            start_run(self.database, run_id=run_id, started_at=self.now(), **announced)
            self.runs.add(run_id)

    @precondition(lambda self: self.work)
    @rule(owner=OWNERS, is_cancelled=st.booleans(), waits=st.booleans())
    def measure(self, owner: str, is_cancelled: bool, waits: bool) -> None:
        work = self.work.get(owner)
        if work is None or work.measured == PLANNED:
            return
        failure = make_failure(FailureKind.CANCELLED) if is_cancelled else None
        # Whoever continues a run measures the same trials under the same ids.
        trial_id = f"{work.run_id}-{work.measured}"
        work.measured += 1
        trial = make_trial(
            trial_id=trial_id, run_id=work.run_id, started_at=START, ended_at=START, failure=failure
        )
        if self._is_known(trial_id):
            return
        if waits:
            self.waiting.trials.append(trial)
        else:
            save_trial(self.database, trial)

    def _is_known(self, trial_id: str) -> bool:
        with self.database.read() as connection:
            stored = connection.scalar(select(TRIAL.c.trial_id).where(TRIAL.c.trial_id == trial_id))
        return stored is not None or trial_id in {trial.trial_id for trial in self.waiting.trials}

    @precondition(lambda self: self.work)
    @rule(owner=OWNERS, waits=st.booleans())
    def end(self, owner: str, waits: bool) -> None:
        """As the service does it: the run by whoever measured it here, then the request."""
        work = self.work.pop(owner, None)
        if work is None:
            return
        is_whole = work.measured == PLANNED
        if is_whole:
            self.whole.add(work.run_id)
        name = work.request.request_id
        goes_on = beat_request(self.database, name, owner=owner)
        if not owner.startswith("boss"):
            ended = (work.run_id, self.now(), RunStatus.FINISHED if is_whole else RunStatus.CANCELLED)
            self.waiting.ends.append(ended)
            if not waits:
                self.replay()
        asked = run_request(self.database, name).cancel_asked
        state = RequestState.CANCELLED if asked else RequestState.QUEUED
        if is_whole:
            state = RequestState.FINISHED
        ended_as = end_request(self.database, name, state, owner=owner, at=self.now())
        assert ended_as is not None or not goes_on

    @precondition(lambda self: self.work)
    @rule(owner=OWNERS)
    def fail(self, owner: str) -> None:
        work = self.work.pop(owner, None)
        if work is not None:
            name = work.request.request_id
            end_request(self.database, name, RequestState.FAILED, owner=owner, at=self.now())

    @precondition(lambda self: self.work)
    @rule(owner=OWNERS)
    def kill(self, owner: str) -> None:
        self.work.pop(owner, None)

    @precondition(lambda self: running_requests(self.database))
    @rule()
    def release(self) -> None:
        """Somebody notices who is silent. A service that is only stopped still holds its work, and wakes."""
        for request in running_requests(self.database):
            if self.fits(request):
                release_request(self.database, request, by="watcher", at=self.now())

    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        open_ = [name for name in self.names if REQUEST_TRANSITIONS[run_request(self.database, name).state]]
        if open_:
            cancel_request(self.database, data.draw(st.sampled_from(open_)), by="ann", at=self.now())

    @rule()
    def replay(self) -> None:
        for trial in self.waiting.trials:
            save_trial(self.database, trial)
        for run_id, at, status in self.waiting.ends:
            end_run(self.database, run_id, at, status)
        self.waiting = Waiting()

    @invariant()
    def what_is_stored_agrees(self) -> None:
        stored = self._runs()
        for run_id, run in stored.items():
            assert (run["status"] is RunStatus.RUNNING) == (run["ended_at"] is None), run
            assert run["ended_at"] is None or run["ended_at"] >= run["started_at"], run
            assert run["trials"] == run["counted"], run
            assert run["status"] is not RunStatus.FINISHED or run_id in self.whole, run
        for name in self.names:
            request = run_request(self.database, name)
            ends = {stored[run_id]["status"] for run_id in request.run_ids if run_id in stored}
            if request.state is RequestState.FINISHED:
                assert ends == {RunStatus.FINISHED}, request
            elif not REQUEST_TRANSITIONS[request.state]:
                assert RunStatus.RUNNING not in ends, request
            steps = [event.state for event in request.history]
            for before, after in itertools.pairwise(steps):
                assert after is before or after in REQUEST_TRANSITIONS[before], steps

    def teardown(self) -> None:
        """At rest: everybody is gone, what waited is in, and every request is done."""
        self.work.clear()
        self.release()
        self.replay()
        for _ in self.names:
            if self.take("gpu:1") is None and "gpu:1" in self.work:
                while self.work["gpu:1"].measured < PLANNED:
                    self.measure("gpu:1", is_cancelled=False, waits=False)
                self.end("gpu:1", waits=False)
        self.what_is_stored_agrees()
        assert not any(REQUEST_TRANSITIONS[run_request(self.database, name).state] for name in self.names)
        assert all(run["status"] is not RunStatus.RUNNING for run in self._runs().values())

    def _runs(self) -> dict[str, dict[str, Any]]:
        counted = select(func.count()).where(TRIAL.c.run_id == RUN.c.run_id).scalar_subquery()
        statement = select(RUN, counted.label("counted")).where(RUN.c.run_id.in_(self.runs))
        with self.database.read() as connection:
            return {row["run_id"]: dict(row) for row in connection.execute(statement).mappings()}


def test_status_end_counts_and_trials_agree_after_random_kills_and_cancellations(
    database: Database,
) -> None:
    machine: Callable[[], States] = type("Stored", (States,), {"database": database})
    run_state_machine_as_test(
        machine,
        settings=settings(
            deadline=None,
            max_examples=EXAMPLES,
            stateful_step_count=30,
            suppress_health_check=list(HealthCheck),
            phases=(Phase.explicit, Phase.reuse, Phase.generate),  # making it smaller takes minutes
        ),
    )


def test_every_state_has_its_transitions_and_an_end() -> None:
    assert set(REQUEST_TRANSITIONS) == set(RequestState)
    assert set(RUN_TRANSITIONS) == {None, *RunStatus}
    assert {state for state, after in REQUEST_TRANSITIONS.items() if not after} == {
        RequestState.FINISHED,
        RequestState.FAILED,
        RequestState.CANCELLED,
    }


def test_a_continued_request_leaves_its_run_finished_and_a_cancelled_one_cancelled(
    database: Database,
) -> None:
    announced: dict[str, Any] = {"suite": "smoke", "label": None, "planned_trials": 1, "started_at": START}
    later = START + timedelta(minutes=5)
    for name, state in (("go-on", RequestState.FINISHED), ("stopped", RequestState.CANCELLED)):
        save_request(database, new_request(name, RequestKind.MANUAL, RequestSpec(), by="ann", at=START))
        begun: dict[str, Any] = {"at": START, "fits": lambda _request: True, "counts": False}
        taken = take_request(database, owner="dead:1", **begun)
        assert taken is not None
        note_runs(database, name, [f"run-{name}"], owner="dead:1", at=START)
        start_run(database, run_id=f"run-{name}", **announced)
        release_request(database, taken, by="next:2", at=later)
        if state is RequestState.FINISHED:
            take_request(database, owner="next:2", **begun)
            end_request(database, name, state, owner="next:2", at=later)
        else:
            cancel_request(database, name, by="ann", at=later)
        with database.read() as connection:
            columns = select(RUN.c.status, RUN.c.ended_at).where(RUN.c.run_id == f"run-{name}")
            assert connection.execute(columns).one() == (RunStatus(state.value), later)


def test_a_request_that_begins_anew_ends_the_run_before_and_a_finished_run_stays_so(
    database: Database,
) -> None:
    announced: dict[str, Any] = {"suite": "smoke", "label": None, "planned_trials": 1, "started_at": START}
    save_request(database, new_request("one", RequestKind.MANUAL, RequestSpec(), by="ann", at=START))
    for owner, run_id in (("dead:1", "first"), ("next:2", "second")):
        taken = take_request(database, owner=owner, at=START, fits=lambda _request: True)
        assert taken is not None
        note_runs(database, "one", [run_id], owner=owner, at=START)
        start_run(database, run_id=run_id, **announced)
        if run_id == "first":
            release_request(database, taken, by="next:2", at=START)
    end_request(database, "one", RequestState.FINISHED, owner="next:2", at=START)
    later = START + timedelta(hours=1)
    end_run(database, "second", later, RunStatus.CANCELLED)
    with database.read() as connection:
        found = connection.execute(select(RUN.c.status, RUN.c.ended_at).order_by(RUN.c.run_id)).all()
    assert [tuple(row) for row in found] == [(RunStatus.CANCELLED, START), (RunStatus.FINISHED, START)]
    end_run(database, "first", later, RunStatus.FINISHED)
    with database.read() as connection:
        assert connection.scalar(select(RUN.c.status).where(RUN.c.run_id == "first")) is RunStatus.FINISHED


def test_a_service_that_lost_its_request_begins_no_run(database: Database) -> None:
    save_request(database, new_request("one", RequestKind.MANUAL, RequestSpec(), by="ann", at=START))
    taken = take_request(database, owner="asleep:1", at=START, fits=lambda _request: True)
    assert taken is not None
    release_request(database, taken, by="next:2", at=START)
    take_request(database, owner="next:2", at=START, fits=lambda _request: True)
    assert note_runs(database, "one", ["mine"], owner="next:2", at=START)
    assert not note_runs(database, "one", ["lost"], owner="asleep:1", at=START)
    assert run_request(database, "one").run_ids == ("mine",)
