"""Run requests: what somebody wants measured, and what became of it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from enum import StrEnum
from typing import Annotated

from pydantic import AwareDatetime, Field

from compilewatch.db.errors import ConfigError
from compilewatch.db.records.fields import Closed, Count, Name, Record
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
