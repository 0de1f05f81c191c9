"""Where a service has its requests measured: on its own host, or elsewhere."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from typing import Protocol

from compilewatch.db.errors import CompilewatchError
from compilewatch.db.records.requests import RunRequest
from compilewatch.runner.config.settings import Settings
from compilewatch.runner.device.host import require_space
from compilewatch.runner.plan.builds import interpreter_facts
from compilewatch.runner.plan.plan import Plan
from compilewatch.runner.plan.requests import plan_request
from compilewatch.runner.process.execution import RunOutcome
from compilewatch.runner.service.timetable import Host

_LOG = logging.getLogger("compilewatch.schedule")

Execute = Callable[[Plan, Callable[[], bool]], RunOutcome]
"""Measures a plan until it is done or the second argument says so, as `runner.process.execution.execute`
does."""


class Measures(Protocol):
    """Any number of threads may use one, each for a request of its own."""

    elsewhere: bool
    """Whether this host only watches: then a request that another service began goes on, and does not begin
    anew.
    """

    def accepts(self, machine: str | None, host: Host) -> bool:
        """Whether what is asked of `machine`, a selector, is for this service. Raises DatabaseError."""
        ...

    def has_room(self, request: RunRequest, under_way: Collection[RunRequest]) -> bool:
        """Whether `request` may begin while those are `under_way`."""
        ...

    def plan(self, settings: Settings, request: RunRequest) -> Plan:
        """The trials that `request` asks for. Raises CompilewatchError where it comes to nothing."""
        ...

    def execute(self, plan: Plan, is_cancelled: Callable[[], bool]) -> RunOutcome:
        """Have a plan of `plan` measured until it is done or `is_cancelled`. Raises DatabaseError."""
        ...

    def warm_up(self, settings: Settings) -> None:
        """Do early what would keep the first request waiting."""
        ...


class Here:
    """Measures on this host, one request at a time."""

    elsewhere = False

    def __init__(self, execute: Execute) -> None:
        self.execute = execute

    def accepts(self, machine: str | None, host: Host) -> bool:
        return host.matches(machine)

    def has_room(self, request: RunRequest, under_way: Collection[RunRequest]) -> bool:  # noqa: ARG002
        return not under_way

    def plan(self, settings: Settings, request: RunRequest) -> Plan:
        require_space(settings.data_dir)
        return plan_request(settings, request.spec)

    def warm_up(self, settings: Settings) -> None:
        """The first look into an interpreter imports torch."""
        try:
            interpreter_facts(settings.builds)
        except CompilewatchError as error:
            _LOG.warning("%s", error)
