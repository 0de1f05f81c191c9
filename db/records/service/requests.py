"""Run requests: what somebody wants measured, and what became of it."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated

from pydantic import AwareDatetime, Field

from compilewatch.db.records.fields import Count, Name, Record
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
"""What a request may become; `db.store.service.requests` makes no other change, and ends its runs with it."""
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
