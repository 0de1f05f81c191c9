"""The stored schedules as jobs in memory, and each firing claimed in the database before it counts.

Nothing of APScheduler is stored: the tables are the truth, its jobs are made from them again and again. Of
any number of services on one database, the one that inserts a firing's row has it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatchcase
from typing import Any

from apscheduler.events import EVENT_JOB_EXECUTED, EVENT_JOB_MISSED, JobExecutionEvent
from apscheduler.executors.base import BaseExecutor
from apscheduler.job import Job
from apscheduler.schedulers.base import BaseScheduler
from ulid import ULID

from compilewatch.db.engine.session import Database
from compilewatch.db.errors import DatabaseError
from compilewatch.db.records.requests import (
    Firing,
    FiringOutcome,
    RequestKind,
    RequestSpec,
    Schedule,
    ScheduleSpec,
)
from compilewatch.db.service.requests import new_request
from compilewatch.db.service.schedules import (
    SCHEDULES,
    claim_firing,
    last_firings,
    names_of_machine,
    note_next_runs,
    save_schedule,
)
from compilewatch.runner.config.cron import Trigger, firings_before, next_firings, parse_cron

_LOG = logging.getLogger("compilewatch.schedule")

GRACE_S = 3600
"""A firing that is noticed later than this is recorded as missed, and the next one awaited."""
UPCOMING_FIRINGS = 5
"""How many of its next firings a schedule is stored with."""
_COUNTED_FIRINGS = 10_000


class Host:
    """Who claims: `owner` names this process, `name` its host, `known_as` everything its host is called."""

    def __init__(self, name: str, owner: str) -> None:
        self.name = name
        self.owner = owner
        self.known_as = {name}

    def matches(self, pattern: str | None) -> bool:
        """Whether a machine selector, a pattern as in a shell, means this host."""
        return pattern is None or any(fnmatchcase(name, pattern) for name in self.known_as)


class ClaimingExecutor(BaseExecutor):  # type: ignore[misc]
    """Runs no job function: hands the newest due time to `fire`, which claims it and queues the work."""

    def __init__(self, fire: Callable[[str, datetime], FiringOutcome | None]) -> None:
        super().__init__()
        self._fire = fire

    def _do_submit_job(self, job: Job, run_times: list[datetime]) -> None:
        outcome = self._fire(job.id, run_times[-1])
        code = EVENT_JOB_MISSED if outcome is FiringOutcome.MISSED else EVENT_JOB_EXECUTED
        event = JobExecutionEvent(code, job.id, job._jobstore_alias, run_times[-1], retval=outcome)
        self._run_job_success(job.id, [event])


class Timetable:
    """Keeps `scheduler` in step with the stored schedules. Call `reconcile` every few seconds.

    Where workers measure, `elsewhere` says whether a machine selector means one of them.
    """

    def __init__(
        self,
        database: Database,
        scheduler: BaseScheduler,
        host: Host,
        configured: Mapping[str, ScheduleSpec],
        clock: Callable[[], datetime],
        *,
        elsewhere: Callable[[str | None], bool] | None = None,
    ) -> None:
        self._database = database
        self._accepts = elsewhere or host.matches
        # Whoever claims a firing has the suite in its configuration; others need not.
        self._machine = None if elsewhere else host.name
        self._scheduler = scheduler
        self._host = host
        self._configured = configured
        self._clock = clock
        self._planned: dict[str, Schedule] = {}
        self._unclaimed: dict[str, datetime] = {}
        self._unreadable: set[str] = set()
        scheduler.configure(
            timezone="UTC",
            executors={"default": ClaimingExecutor(self.fire)},
            job_defaults={"coalesce": True, "max_instances": 1, "misfire_grace_time": GRACE_S},
        )
        scheduler.add_listener(_log_missed, EVENT_JOB_MISSED)

    def start(self) -> None:
        """Store what the configuration says and begin to fire. Raises DatabaseError."""
        for name, spec in self._configured.items():
            save_schedule(self._database, name, spec, at=self._clock(), from_config=True)
        self._scheduler.start()
        self.reconcile()

    def stop(self) -> None:
        """Fire no more."""
        if self._scheduler.running:
            self._scheduler.shutdown(wait=False)

    def reconcile(self) -> None:
        """Bring the jobs in step with the tables, and notice a clock that jumped. Raises DatabaseError."""
        for name, fire_at in list(self._unclaimed.items()):
            self.fire(name, fire_at)
        self._host.known_as = names_of_machine(self._database, self._host.name)
        stored = SCHEDULES.all(self._database)
        last = last_firings(self._database)
        wanted = {schedule.name: schedule for schedule in stored if self._is_ours(schedule)}
        for name in self._planned.keys() - wanted.keys():
            self._scheduler.remove_job(name)
            del self._planned[name]
        for name, schedule in wanted.items():
            known = self._planned.get(name)
            changed = known is None or (known.spec, known.active_since) != (
                schedule.spec,
                schedule.active_since,
            )
            if changed or self._was_set_back(name):
                self._plan(schedule, last.get(name))
        self._note_next_runs(wanted)
        self._scheduler.wakeup()

    def fire(self, name: str, fire_at: datetime) -> FiringOutcome | None:
        """Claim the firing and queue its request: None where another service has it, or the database is away.

        Then it is tried again with the next `reconcile`.
        """
        now, schedule = self._clock(), self._planned.get(name)
        if schedule is None:
            self._unclaimed.pop(name, None)
            return None
        is_missed = now - fire_at > timedelta(seconds=GRACE_S)
        spec = schedule.spec
        request = new_request(
            str(ULID()),
            RequestKind.SCHEDULE,
            RequestSpec(suite=spec.suite, trials=spec.trials, machine=spec.machine or self._machine),
            by=f"schedule {name}",
            at=now,
        )
        try:
            firing = Firing(
                schedule=name,
                fire_at=fire_at,
                owner=self._host.owner,
                claimed_at=now,
                outcome=FiringOutcome.MISSED if is_missed else FiringOutcome.QUEUED,
                firings=1,
            )
            outcome = claim_firing(
                self._database,
                firing,
                None if is_missed else request,
                missed_before=lambda newest: self._missed(schedule, fire_at, newest),
            )
        except DatabaseError as error:
            _LOG.warning("Schedule %s is due and will be claimed later: %s", name, error)
            self._unclaimed[name] = fire_at
            return None
        self._unclaimed.pop(name, None)
        if outcome is not None:
            _LOG.info("Schedule %s fired for %s: %s.", name, fire_at.isoformat(), outcome.value)
        return outcome

    def _is_ours(self, schedule: Schedule) -> bool:
        there = not schedule.from_config or schedule.name in self._configured
        return there and not schedule.paused and self._accepts(schedule.spec.machine)

    def _plan(self, schedule: Schedule, last: Firing | None) -> None:
        """Make or replace the job. It begins where the stored firings end, not now: none is skipped."""
        trigger = self._trigger(schedule)
        if trigger is None:
            return
        since = self._begin(schedule, last.fire_at if last else None)
        first = trigger.get_next_fire_time(since, since)
        options: dict[str, Any] = {"id": schedule.name, "name": schedule.name, "replace_existing": True}
        self._planned[schedule.name] = schedule
        self._scheduler.add_job(_nothing, trigger, next_run_time=first, **options)

    def _was_set_back(self, name: str) -> bool:
        """Whether the clock now stands before a firing that the job is past: what it awaits is too late."""
        job = self._scheduler.get_job(name)
        if job is None or job.next_run_time is None:
            return False
        return any(job.next_run_time > firing for firing in next_firings(job.trigger, self._clock(), 1))

    def _begin(self, schedule: Schedule, newest: datetime | None) -> datetime:
        """After which moment firings count. A clock that once ran ahead must not silence the schedule."""
        since = max(schedule.active_since, newest) if newest else schedule.active_since
        return min(since, self._clock())

    def _trigger(self, schedule: Schedule) -> Trigger | None:
        try:
            return parse_cron(schedule.spec.cron, schedule.spec.timezone)
        except ValueError as error:
            if schedule.name not in self._unreadable:
                _LOG.warning("Schedule %s never fires here: %s.", schedule.name, error)
            self._unreadable.add(schedule.name)
            return None

    def _missed(
        self, schedule: Schedule, fire_at: datetime, newest: datetime | None
    ) -> list[datetime] | None:
        """The firings before `fire_at` since the last claimed one, which nobody noticed in time.

        None where a later one is claimed, as while this process was stopped: then this one was missed too.
        """
        if newest is not None and fire_at <= newest <= self._clock():
            return None
        trigger = self._trigger(schedule)
        if trigger is None:
            return []
        return firings_before(trigger, self._begin(schedule, newest), fire_at, _COUNTED_FIRINGS)

    def _note_next_runs(self, wanted: Mapping[str, Schedule]) -> None:
        for name, schedule in wanted.items():
            job = self._scheduler.get_job(name)
            upcoming = _upcoming(job) if job else ()
            if upcoming != schedule.upcoming:
                note_next_runs(self._database, name, upcoming)


def _upcoming(job: Job) -> tuple[datetime, ...]:
    """The job's next firings, those that are due already included."""
    first = job.next_run_time
    if first is None:
        return ()
    return (first.astimezone(UTC), *next_firings(job.trigger, first, UPCOMING_FIRINGS - 1))


def _nothing() -> None:
    """What a job would run; claiming is the executor's."""


def _log_missed(event: JobExecutionEvent) -> None:
    _LOG.warning("Schedule %s missed its firing of %s.", event.job_id, event.scheduled_run_time.isoformat())
