"""The dead man's switch, by a fake clock: who is told, when, and how often."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from compilewatch.db.engine.session import Database
from compilewatch.db.records.requests import (
    Firing,
    FiringOutcome,
    RequestKind,
    RequestSpec,
    RequestState,
    Schedule,
    ScheduleSpec,
    ScheduleWatch,
)
from compilewatch.db.records.trial import FailureKind
from compilewatch.db.service.requests import end_request, new_request, note_runs, take_request
from compilewatch.db.service.schedules import (
    claim_firing,
    last_result_of,
    pause_schedule,
    resume_schedule,
    save_schedule,
    schedule_watches,
    silent_schedules,
)
from compilewatch.db.store.trials import save_trials
from compilewatch.runner.config.settings import NotifySettings
from compilewatch.runner.regressions.notify import silence_message
from compilewatch.runner.service.service import Silence, result_due_at
from tests.builders import make_trial

NIGHTLY = ScheduleSpec(cron="0 3 * * *")
START = datetime(2026, 11, 20, 12, tzinfo=UTC)


def night(day: int, hour: int = 3) -> datetime:
    return datetime(2026, 11, day, hour, tzinfo=UTC)


class Told:
    """Remembers what people were told."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def __call__(self, watch: ScheduleWatch, schedule: Schedule) -> None:
        assert watch.due_at is not None
        self.names.append(schedule.name)


def watching(database: Database, told: Told) -> Silence:
    save_schedule(database, "nightly", NIGHTLY, at=START, from_config=True)
    return Silence(database, {"nightly": NIGHTLY}, told)


def measure(database: Database, at: datetime, *, failure: FailureKind | None = None) -> None:
    """What a firing at `at` leads to: a request, a run, one trial five minutes later."""
    name = f"{at:%d%H}"
    request = new_request(name, RequestKind.SCHEDULE, RequestSpec(), by="schedule nightly", at=at)
    firing = Firing(
        schedule="nightly", fire_at=at, owner="me", claimed_at=at, outcome=FiringOutcome.QUEUED, firings=1
    )
    claim_firing(database, firing, request)
    take_request(database, owner="me", at=at, fits=lambda _request: True)
    note_runs(database, name, [f"run-{name}"], owner="me", at=at)
    trial = make_trial(
        trial_id=f"trial-{name}", run_id=f"run-{name}", started_at=at + timedelta(minutes=5), failure=failure
    )
    save_trials(database, [trial])
    end_request(database, name, RequestState.FINISHED, owner="me", at=at)


def test_a_result_is_due_a_whole_period_after_the_firing_that_leads_to_it() -> None:
    schedule = Schedule(name="n", spec=NIGHTLY, from_config=True, paused=False, active_since=START)
    assert result_due_at(schedule, None) == night(22)
    assert result_due_at(schedule, night(21, 4)) == night(23)
    assert result_due_at(schedule.model_copy(update={"paused": True}), None) is None
    rare = schedule.model_copy(update={"spec": ScheduleSpec(cron="0 3 * * mon")})
    assert result_due_at(rare, None) == night(30)


def test_silence_is_told_once_and_again_after_the_next_result(database: Database) -> None:
    told = Told()
    silence = watching(database, told)
    for day in (20, 21):
        assert silence.check(night(day, 13)) == []
    assert silence.check(night(22, 2)) == []
    assert silent_schedules(database, night(22, 2)) == []
    assert silence.check(night(22)) == ["nightly"]
    assert silence.check(night(22, 5)) == silence.check(night(25)) == []
    assert [watch.schedule for watch in silent_schedules(database, night(25))] == ["nightly"]
    measure(database, night(25))
    assert silence.check(night(25, 4)) == []
    assert silent_schedules(database, night(25, 4)) == []
    assert silence.check(night(27)) == ["nightly"]
    assert told.names == ["nightly", "nightly"]


def test_of_two_services_one_tells(database: Database) -> None:
    told = Told()
    first, second = watching(database, told), watching(database, told)
    assert [first.check(night(23)), second.check(night(23))] == [["nightly"], []]


def test_a_dashboard_sees_it_when_no_service_lives(database: Database) -> None:
    watching(database, Told()).check(night(20, 13))
    (watch,) = silent_schedules(database, night(24))
    assert (watch.schedule, watch.due_at) == ("nightly", night(22))


def test_failures_are_results_and_cancelled_trials_are_none(database: Database) -> None:
    silence = watching(database, Told())
    measure(database, night(21), failure=FailureKind.OUT_OF_MEMORY)
    assert last_result_of(database, "nightly") is not None
    measure(database, night(22), failure=FailureKind.CANCELLED)
    assert silence.check(night(22, 13)) == []
    assert schedule_watches(database)["nightly"].due_at == night(23)


def test_a_paused_schedule_owes_nothing(database: Database) -> None:
    told = Told()
    silence = watching(database, told)
    silence.check(START)
    pause_schedule(database, "nightly", by="ann", at=night(23))
    assert silent_schedules(database, night(24)) == []
    assert silence.check(night(24)) == []
    resume_schedule(database, "nightly", by="ann", at=night(24))
    assert silence.check(night(24, 4)) == []
    assert told.names == []


@pytest.mark.parametrize(
    ("base_url", "link"), [(None, None), ("https://x.example/", "https://x.example/runs")]
)
def test_the_message_says_what_is_missing_and_where_to_look(base_url: str | None, link: str | None) -> None:
    schedule = Schedule(name="nightly", spec=NIGHTLY, from_config=True, paused=False, active_since=START)
    watch = ScheduleWatch(schedule="nightly", last_result_at=night(20), due_at=night(22))
    message = silence_message(watch, schedule, NotifySettings(base_url=base_url).base_url)
    document = message.document()
    assert document["schema"] == "compilewatch.silence/1"
    assert "nightly" in document["title"]
    assert "2026-11-20" in document["text"]
    assert "2026-11-22" in document["text"]
    assert document["link"] == link
