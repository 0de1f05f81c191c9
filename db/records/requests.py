"""Run requests: what somebody wants measured, and what became of it.

Schedules and their firings: when a suite is to be measured, when it was, whether it is overdue.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from enum import StrEnum
from typing import Annotated

from pydantic import AwareDatetime, Field

from compilewatch.db.errors import ConfigError
from compilewatch.db.records.fields import Closed, Count, Name, Record, UtcDatetime
from compilewatch.db.records.trial import Build

Positive = Annotated[int, Field(ge=1)]


class RequestKind(StrEnum):
    """Why something is to be measured, the most urgent first."""

    CONFIRMATION = "confirmation"
    MANUAL = "manual"
    UPGRADE = "upgrade"
    SCHEDULE = "schedule"


PRIORITY = {kind: 10 * urgency for urgency, kind in enumerate(reversed(RequestKind))}
"""Higher goes first; equal ones go in the order in which they were requested."""


class RequestState(StrEnum):
    """How a request stands; the last three are final."""

    QUEUED = "queued"
    RUNNING = "running"
    FINISHED = "finished"
    FAILED = "failed"
    CANCELLED = "cancelled"


REQUEST_TRANSITIONS: Mapping[RequestState, frozenset[RequestState]] = {
    RequestState.QUEUED: frozenset({RequestState.RUNNING, RequestState.CANCELLED}),
    RequestState.RUNNING: frozenset(RequestState) - {RequestState.RUNNING},
    RequestState.FINISHED: frozenset(),
    RequestState.FAILED: frozenset(),
    RequestState.CANCELLED: frozenset(),
}
"""What a request may become; `db.service.requests` makes no other change, and ends its runs with it."""
UNFINISHED = tuple(state for state in RequestState if REQUEST_TRANSITIONS[state])
ATTEMPTS = 3
"""How often a request is begun at most, by services that stopped or died before it was done."""


class RequestSpec(Record):
    """What to measure, all by name as the configuration of the measuring host knows it.

    `cases` (workload, strategy) stand for themselves, else `workloads` and `strategies` select as in
    `compilewatch run`. `stacks` are builds as trials recorded them, to be found among those of the measuring
    host; they stand for `builds`. `machine` is a pattern of host name, machine id or device name, None any.
    Rounds beyond `budget_trials` are left out. `profile` and `trace` follow the first trial of every case; a
    trace stays on the measuring host.
    """

    suite: Name | None = None
    workloads: tuple[Name, ...] = ()
    strategies: tuple[Name, ...] = ()
    cases: tuple[tuple[Name, Name], ...] = ()
    builds: tuple[Name, ...] = ()
    stacks: tuple[Build, ...] = ()
    machine: Name | None = None
    trials: Positive | None = None
    budget_trials: Positive | None = None
    label: Name | None = None
    profile: bool = False
    trace: bool = False


class RequestEvent(Record):
    """One change of a request: who did it and why."""

    at: AwareDatetime
    state: RequestState
    by: str
    note: str | None = None


class RunRequest(Record):
    """A request as it stands. `attempts` counts how often a service began it, `beat` that its owner lives."""

    request_id: str
    kind: RequestKind
    priority: int
    spec: RequestSpec
    asked_by: str
    asked_at: AwareDatetime
    state: RequestState
    cancel_asked: bool = False
    owner: str | None = None
    attempts: Count = 0
    beat: Count = 0
    run_ids: tuple[str, ...] = ()
    history: tuple[RequestEvent, ...] = ()


class RunStatus(StrEnum):
    """A run that nobody announced (an imported one) has no status.

    `running` stays stored with a run whose process was killed, until its request ends or begins anew.
    """

    RUNNING = "running"
    FINISHED = "finished"
    CANCELLED = "cancelled"


INTERRUPTED = "interrupted"
"""What a run is called that is stored as running and has stored nothing for `INTERRUPTED_AFTER`."""
INTERRUPTED_AFTER = timedelta(hours=1)
"""As long as a trial may take at most (`timeout_s` of [run]). Its process was killed, or the database is a
copy that was made while it went on."""

RUN_TRANSITIONS: Mapping[RunStatus | None, frozenset[RunStatus]] = {
    None: frozenset({RunStatus.RUNNING}),
    RunStatus.RUNNING: frozenset({RunStatus.FINISHED, RunStatus.CANCELLED}),
    # Whoever measured it whole knows more than who gave it up, as where its end waited on a disk.
    RunStatus.CANCELLED: frozenset({RunStatus.FINISHED}),
    RunStatus.FINISHED: frozenset(),
}
"""What a run may become; `db.store.trials` ignores every other change. None: its trials came, no
announcement."""


class Limits(Closed):
    """`[limits]`: how much one run or request may ask for; more is refused before it is planned."""

    trials: Positive = 20_000
    cases: Positive = 2_000
    builds: Positive = 20
    sweeps: Positive = 500

    def require(self, what: str, count: int) -> None:
        """Raise ConfigError where `count` of `what`, a field's name, is more than its limit."""
        limit: int = getattr(self, what)
        if count > limit:
            raise ConfigError(
                f"This asks for {count:,} {what}; at most {limit:,} are planned at once.",
                f"Ask for less, or raise {what} of [limits].",
            )

    def require_request(self, spec: RequestSpec) -> None:
        """Raise ConfigError where what `spec` itself says goes beyond; the planner knows its suite."""
        cases = len(spec.cases) or len(spec.workloads) * len(spec.strategies)
        builds = len(spec.stacks or spec.builds)
        self.require("builds", builds)
        self.require("cases", cases)
        self.require("trials", (spec.trials or 1) * max(1, cases) * max(1, builds))


class ScheduleSpec(Record):
    """What a schedule says. `cron` has five fields; `machine` is a pattern of host names, None any."""

    cron: str
    timezone: str = "UTC"
    suite: str | None = None
    trials: int | None = None
    machine: str | None = None


class Schedule(Record):
    """A schedule as it stands. `from_config` ones fire only where the configuration still has them.

    Firings before `active_since` are not made up for: it was new, changed or paused then. `upcoming` are the
    next firings as the service that keeps it planned them, null while none does. `changed_by` is who paused
    or resumed it last.
    """

    name: str
    spec: ScheduleSpec
    from_config: bool
    paused: bool
    active_since: AwareDatetime
    next_run_at: AwareDatetime | None = None
    upcoming: tuple[AwareDatetime, ...] | None = None
    changed_at: AwareDatetime | None = None
    changed_by: str | None = None


class FiringOutcome(StrEnum):
    """`missed`: noticed too late to be worth it. `overrun`: the one before was not done yet."""

    QUEUED = "queued"
    MISSED = "missed"
    OVERRUN = "overrun"


class Firing(Record):
    """One firing, claimed by exactly one service. `firings` counts itself and missed ones without a row."""

    schedule: str
    fire_at: AwareDatetime
    owner: str
    claimed_at: AwareDatetime
    outcome: FiringOutcome
    firings: int
    request_id: str | None = None


class ScheduleWatch(Record):
    """By `due_at` the schedule must have produced a result, by its own cron; null while none is awaited."""

    schedule: str
    last_result_at: UtcDatetime | None = None
    due_at: UtcDatetime | None = None
    told_due_at: UtcDatetime | None = None

    def is_silent(self, now: UtcDatetime) -> bool:
        """Whether it has produced nothing for a whole period."""
        return self.due_at is not None and now >= self.due_at
