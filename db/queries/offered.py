"""What there is to choose from, by name: a few columns of each facet, since pages ask after every write."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import Connection, func, select

from compilewatch.db.engine.session import Database
from compilewatch.db.queries.facets import BEGAN, is_measured
from compilewatch.db.tables.run_parts import RUN_PART
from compilewatch.db.tables.trials import MACHINE, RUN, STRATEGY, WORKLOAD

_MEASURED = (
    select(RUN_PART.c.last_seen_at)
    .join(RUN)
    .where(RUN_PART.c.machine_id == MACHINE.c.machine_id, is_measured())
    .order_by(RUN_PART.c.last_seen_at.desc())
    .limit(1)
)
_MACHINES = select(
    *(MACHINE.c.machine_id, MACHINE.c.name, MACHINE.c.device_name, MACHINE.c.last_seen_at),
    _MEASURED.correlate(MACHINE).scalar_subquery(),
)
_WORKLOADS = select(WORKLOAD.c.name).distinct()
_STRATEGIES = select(STRATEGY.c.name).distinct()
_SUITES = select(RUN.c.suite).where(RUN.c.suite.is_not(None)).distinct().order_by(RUN.c.suite)
_RUNS = select(RUN.c.run_id, RUN.c.suite, BEGAN.label("began")).order_by(BEGAN.desc(), RUN.c.run_id.desc())
_OLDEST = select(func.min(BEGAN))


class OfferedMachine(NamedTuple):
    """A machine as it was last called, when its newest trial began, and the newest that was not imported."""

    machine_id: str
    name: str
    device_name: str
    last_seen_at: datetime | None
    last_measured_at: datetime | None


class OfferedRun(NamedTuple):
    """A run; one that was not announced began with its first trial."""

    run_id: str
    suite: str | None
    began: datetime | None


@dataclass(frozen=True)
class Offered:
    """What can be chosen beside builds: machines, workloads and suites by name, runs newest first."""

    machines: Sequence[OfferedMachine]
    workloads: Sequence[str]
    strategies: Sequence[str]
    suites: Sequence[str]
    runs: Sequence[OfferedRun]
    oldest_run_at: datetime | None


def offered(db: Database, *, newest_runs: int) -> Offered:
    """What there is to choose from, of the runs at most `newest_runs`."""
    with db.read() as connection:
        return Offered(
            machines=_machines(connection),
            workloads=sorted(connection.scalars(_WORKLOADS)),
            strategies=list(connection.scalars(_STRATEGIES)),
            suites=list(connection.scalars(_SUITES)),
            runs=[OfferedRun(*row) for row in connection.execute(_RUNS.limit(newest_runs))],
            oldest_run_at=connection.scalar(_OLDEST),
        )


def machine_measured_last(db: Database) -> str | None:
    """The machine that pages show unless asked for another."""
    with db.read() as connection:
        newest = newest_machine(_machines(connection))
    return None if newest is None else newest.machine_id


def newest_machine(machines: Sequence[OfferedMachine]) -> OfferedMachine | None:
    """The one with the newest trial that was measured; where none was, with the newest."""
    return next(iter(newest_first(machines)), None)


def newest_first(machines: Sequence[OfferedMachine]) -> list[OfferedMachine]:
    """Those whose newest trial was measured before those that only have imported ones."""
    return sorted(machines, key=_recency, reverse=True)


def _recency(machine: OfferedMachine) -> tuple[float, float, str, str]:
    measured, last_at = (
        -math.inf if moment is None else moment.timestamp()
        for moment in (machine.last_measured_at, machine.last_seen_at)
    )
    return measured, last_at, machine.name, machine.machine_id


def _machines(connection: Connection) -> list[OfferedMachine]:
    machines = [OfferedMachine(*row) for row in connection.execute(_MACHINES)]
    return sorted(machines, key=lambda machine: (machine.name, machine.machine_id))
