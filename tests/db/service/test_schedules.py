"""Schedules, firings and the queue, on both databases."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import compilewatch.db.service.requests
from compilewatch.db.engine.session import Database
from compilewatch.db.errors import ConflictError, NotFoundError
from compilewatch.db.records.requests import (
    ATTEMPTS,
    Firing,
    FiringOutcome,
    RequestKind,
    RequestSpec,
    RequestState,
    RunRequest,
    ScheduleSpec,
)
from compilewatch.db.service.requests import (
    beat_request,
    cancel_request,
    end_request,
    new_request,
    note_runs,
    queue,
    release_request,
    requests,
    run_request,
    save_request,
    take_request,
)
from compilewatch.db.service.schedules import (
    SCHEDULES,
    claim_firing,
    firings,
    last_firings,
    measured_stacks,
    names_of_machine,
    note_next_runs,
    pause_schedule,
    resume_schedule,
    save_schedule,
)
from compilewatch.db.store.trials import save_trial
from tests.builders import make_trial

NOW = datetime(2026, 11, 20, 3, 0, tzinfo=UTC)
NIGHTLY = ScheduleSpec(cron="0 3 * * *", suite="smoke")
BY = {"by": "ann", "at": NOW}
OF_HOST = {"owner": "host:1", "at": NOW}


def ask(name: str, kind: RequestKind = RequestKind.MANUAL, minutes: int = 0, **spec: Any) -> RunRequest:
    return new_request(name, kind, RequestSpec(**spec), by="ann", at=NOW + timedelta(minutes=minutes))


def firing(at: datetime = NOW, owner: str = "host:1", **changes: Any) -> Firing:
    fields: dict[str, Any] = {
        "schedule": "nightly",
        "fire_at": at,
        "owner": owner,
        "claimed_at": at,
        "outcome": FiringOutcome.QUEUED,
        "firings": 1,
    }
    return Firing(**fields | changes)


def take(database: Database, owner: str = "host:1") -> RunRequest | None:
    return take_request(database, owner=owner, at=NOW, fits=lambda _request: True)


def test_a_schedule_keeps_its_pause_when_it_changes(database: Database) -> None:
    save_schedule(database, "nightly", NIGHTLY, at=NOW, from_config=True)
    assert pause_schedule(database, "nightly", by="ann", at=NOW)
    assert not pause_schedule(database, "nightly", by="bob", at=NOW)
    later = NOW + timedelta(days=1)
    save_schedule(database, "nightly", NIGHTLY, at=later, from_config=True)
    (same,) = SCHEDULES.all(database)
    assert (same.paused, same.active_since) == (True, NOW)
    assert (same.changed_by, same.changed_at) == ("ann", NOW)
    changed = NIGHTLY.model_copy(update={"cron": "0 4 * * *"})
    save_schedule(database, "nightly", changed, at=later, from_config=True)
    (now,) = SCHEDULES.all(database)
    assert (now.spec, now.paused, now.active_since) == (changed, True, later)


def test_resuming_forgets_what_was_missed(database: Database) -> None:
    save_schedule(database, "nightly", NIGHTLY, at=NOW)
    pause_schedule(database, "nightly", by="ann", at=NOW)
    later = NOW + timedelta(days=3)
    assert resume_schedule(database, "nightly", by="bob", at=later)
    assert not resume_schedule(database, "nightly", by="ann", at=later)
    upcoming = tuple(later + timedelta(days=day) for day in range(5))
    note_next_runs(database, "nightly", upcoming)
    (schedule,) = SCHEDULES.all(database)
    assert (schedule.active_since, schedule.next_run_at, schedule.upcoming) == (later, later, upcoming)
    assert (schedule.changed_by, schedule.changed_at) == ("bob", later)
    pause_schedule(database, "nightly", by="ann", at=later)
    (schedule,) = SCHEDULES.all(database)
    assert (schedule.next_run_at, schedule.upcoming) == (None, None)
    with pytest.raises(NotFoundError, match="no schedule 'weekly'"):
        pause_schedule(database, "weekly", by="ann", at=NOW)


def test_a_firing_is_claimed_once(database: Database) -> None:
    save_schedule(database, "nightly", NIGHTLY, at=NOW)
    assert claim_firing(database, firing(), ask("first")) is FiringOutcome.QUEUED
    assert claim_firing(database, firing(owner="other:2"), ask("second")) is None
    assert [request.request_id for request in requests(database)] == ["first"]
    (stored,) = firings(database, "nightly")
    assert (stored.owner, stored.request_id) == ("host:1", "first")


def test_a_firing_that_overruns_queues_nothing(database: Database) -> None:
    save_schedule(database, "nightly", NIGHTLY, at=NOW)
    claim_firing(database, firing(), ask("first"))
    for hours, state in ((1, None), (2, RequestState.RUNNING)):
        if state is RequestState.RUNNING:
            take(database)
        outcome = claim_firing(database, firing(NOW + timedelta(hours=hours)), ask(f"more-{hours}"))
        assert outcome is FiringOutcome.OVERRUN
    end_request(database, "first", RequestState.FINISHED, **OF_HOST)
    assert claim_firing(database, firing(NOW + timedelta(hours=3)), ask("next")) is FiringOutcome.QUEUED
    assert [each.outcome for each in firings(database, "nightly")] == [
        "queued",
        "overrun",
        "overrun",
        "queued",
    ]
    assert last_firings(database)["nightly"].request_id == "next"


def test_the_most_urgent_goes_first_and_equals_in_turn(database: Database) -> None:
    for request in (
        ask("scheduled", RequestKind.SCHEDULE),
        ask("manual-2", minutes=2),
        ask("confirm", RequestKind.CONFIRMATION, minutes=9),
        ask("manual-1", minutes=1),
        ask("upgrade", RequestKind.UPGRADE),
    ):
        assert save_request(database, request)
    expected = ["confirm", "manual-1", "manual-2", "upgrade", "scheduled"]
    assert [request.request_id for request in queue(database)] == expected
    taken = [take(database) for _ in expected]
    assert [request.request_id for request in taken if request] == expected
    assert take(database) is None


def test_a_request_is_stored_as_it_was_asked_and_once(database: Database) -> None:
    asked = ask("one", cases=(("cnn", "default"),), builds=("torch-2.12",), machine="gpu-*", budget_trials=8)
    assert save_request(database, asked)
    assert not save_request(database, asked)
    assert run_request(database, "one") == asked


def test_only_what_fits_is_taken(database: Database) -> None:
    save_request(database, ask("elsewhere", RequestKind.CONFIRMATION, machine="gpu-9"))
    save_request(database, ask("here"))
    taken = take_request(database, owner="host:1", at=NOW, fits=lambda each: each.spec.machine is None)
    assert (taken.request_id, taken.owner, taken.attempts) == ("here", "host:1", 1)


def test_a_long_queue_is_read_as_far_as_somebody_looks(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(120):
        save_request(
            database, ask(f"r{number:03d}", minutes=number, machine=None if number < 119 else "gpu-9")
        )
    read: list[int] = []
    queued = compilewatch.db.service.requests.queue

    def counting(*arguments: Any, **more: Any) -> list[RunRequest]:
        read.append(len(found := queued(*arguments, **more)))
        return found

    monkeypatch.setattr(compilewatch.db.service.requests, "queue", counting)
    taken = take(database)
    assert (taken.request_id, read) == ("r000", [50])
    read.clear()
    last = take_request(database, owner="host:1", at=NOW, fits=lambda each: each.spec.machine == "gpu-9")
    assert (last.request_id, read) == ("r119", [50, 50, 19])
    assert take_request(database, owner="host:1", at=NOW, fits=lambda _each: False) is None


def test_the_history_says_who_did_what(database: Database) -> None:
    save_request(database, ask("one"))
    take(database)
    note_runs(database, "one", ["RUN1", "RUN2"], owner="host:1", at=NOW)
    assert beat_request(database, "one", owner="host:1")
    assert cancel_request(database, "one", by="bob", at=NOW) is RequestState.RUNNING
    assert cancel_request(database, "one", by="bob", at=NOW) is RequestState.RUNNING
    assert not beat_request(database, "one", owner="host:1")
    assert end_request(database, "one", RequestState.CANCELLED, **OF_HOST) is RequestState.CANCELLED
    done = run_request(database, "one")
    assert done.run_ids == ("RUN1", "RUN2")
    assert [(event.state, event.by) for event in done.history] == [
        ("queued", "ann"),
        ("running", "host:1"),
        ("running", "bob"),
        ("cancelled", "host:1"),
    ]
    with pytest.raises(ConflictError, match="cancelled already"):
        cancel_request(database, "one", **BY)


def test_a_queued_request_is_cancelled_at_once(database: Database) -> None:
    save_request(database, ask("one"))
    assert cancel_request(database, "one", **BY) is RequestState.CANCELLED
    assert take(database) is None
    with pytest.raises(NotFoundError, match="no run request two"):
        cancel_request(database, "two", **BY)


def test_only_its_owner_ends_a_request(database: Database) -> None:
    save_request(database, ask("one"))
    take(database, "host:1")
    assert end_request(database, "one", RequestState.FINISHED, owner="other:2", at=NOW) is None
    assert not beat_request(database, "one", owner="other:2")
    assert run_request(database, "one").state is RequestState.RUNNING


def test_an_abandoned_request_is_tried_again_but_not_for_ever(database: Database) -> None:
    save_request(database, ask("one"))
    for attempt in range(1, ATTEMPTS + 1):
        taken = take(database, f"host:{attempt}")
        assert taken is not None
        state = release_request(database, taken, by="watcher", at=NOW)
    assert state is RequestState.FAILED
    assert "begun 3 times" in (run_request(database, "one").history[-1].note or "")


def test_a_request_that_moves_is_not_abandoned(database: Database) -> None:
    save_request(database, ask("one"))
    taken = take(database)
    assert taken is not None
    beat_request(database, "one", owner="host:1")
    assert release_request(database, taken, by="watcher", at=NOW) is None
    assert run_request(database, "one").owner == "host:1"


def test_a_cancelled_request_is_not_tried_again(database: Database) -> None:
    save_request(database, ask("one"))
    take(database)
    cancel_request(database, "one", **BY)
    assert end_request(database, "one", RequestState.QUEUED, **OF_HOST) is RequestState.CANCELLED


def test_a_host_is_known_by_its_machines_and_its_stacks(database: Database) -> None:
    trial = make_trial()
    save_trial(database, trial)
    host = trial.machine.name
    names = names_of_machine(database, host)
    assert {host, trial.machine.device_name} < names
    assert len(names) == 3
    assert measured_stacks(database, host) == {
        (trial.build.torch, trial.build.torch_variant, trial.build.driver)
    }
    assert names_of_machine(database, "elsewhere") == {"elsewhere"}
    assert measured_stacks(database, "elsewhere") == set()
