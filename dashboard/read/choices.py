"""What a reader can choose from, as names ready to show: made once per data version."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from threading import Lock
from typing import Any

import pandas as pd

from dashboard.read.shaping import build_names
from dashboard.text import theme
from db import units
from db.metrics.groups import row_dicts
from db.queries.facets import version_order
from db.queries.offered import Offered, OfferedRun, newest_first, newest_machine

# What builds are called: read and named once, and again only where a build comes or changes.

_COUNTS = ("trials", "failed_trials", "first_seen_at", "last_seen_at")


@dataclass(frozen=True)
class NamedBuilds:
    """Every build by its id, oldest version first: what it is called, and its parts."""

    names: Mapping[str, str]
    rows: Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class _Build:
    known: tuple[object, ...]
    order: tuple[object, ...]
    row: Mapping[str, Any]


class KnownBuilds:
    """The builds of one database as they were read last. Safe to share between threads."""

    def __init__(self, read: Callable[[Sequence[str] | None], pd.DataFrame]) -> None:
        """`read`: the frame of `db.queries.facets.builds` for some ids, or for all."""
        self._read = read
        self._lock = Lock()
        self._builds: dict[str, _Build] = {}
        self._named: tuple[tuple[tuple[object, ...], ...], NamedBuilds] | None = None

    def named(self, known: tuple[tuple[object, ...], ...]) -> NamedBuilds:
        """`known` as `db.queries.offered.Offered` tells it: id first, and what changes with a build."""
        with self._lock:
            if self._named is None or self._named[0] != known:
                self._take(known)
                self._named = known, self._name()
            return self._named[1]

    def _take(self, known: tuple[tuple[object, ...], ...]) -> None:
        stamps = {str(each[0]): each for each in known}
        self._builds = {key: build for key, build in self._builds.items() if stamps.get(key) == build.known}
        changed = [key for key in stamps if key not in self._builds]
        # One statement holds only so many ids.
        for row in row_dicts(self._read(changed if len(changed) < len(stamps) / 2 else None)):
            key = row["build_id"]
            if key in stamps and key not in self._builds:
                parts = {name: value for name, value in row.items() if name not in _COUNTS}
                self._builds[key] = _Build(stamps[key], version_order(row), parts)

    def _name(self) -> NamedBuilds:
        rows = [build.row for build in sorted(self._builds.values(), key=lambda build: build.order)]
        return NamedBuilds(build_names(rows), {row["build_id"]: row for row in rows})


NEWEST_RUNS = 200


@dataclass(frozen=True)
class Choices:
    """Ids to names, in the order in which they are offered; no machine means an empty database."""

    machines: Mapping[str, str]
    machine_names: Mapping[str, str]
    builds: Mapping[str, str]
    offered_builds: Sequence[str]
    build_rows: Mapping[str, Mapping[str, Any]]
    suites: Sequence[str]
    workloads: Sequence[str]
    strategies: Sequence[str]
    runs: Mapping[str, str]
    newest_machine: str | None
    newest_machines: Sequence[str]
    newest_result_at: datetime | None
    oldest_run_at: datetime | None

    def on_machine(self, builds: Collection[str]) -> Choices:
        """The same with only these `builds` of a machine offered, named by what tells them apart."""
        measured = set(builds)
        mine = [key for key in self.builds if key in measured]
        names = build_names(self.build_rows[key] for key in mine)
        return replace(self, builds={**self.builds, **names}, offered_builds=mine)

    @property
    def names(self) -> dict[str, Mapping[str, str]]:
        """The names that a sentence about a link needs."""
        builds = dict.fromkeys(("build", "base", "head"), self.builds)
        return {"machine": self.machines, **builds}

    @property
    def known(self) -> dict[str, Sequence[str]]:
        """The values of each selector but builds that the database has."""
        return {
            "machine": list(self.machines),
            "suite": self.suites,
            "workload": self.workloads,
            "strategy": self.strategies,
        }

    @cached_property
    def called(self) -> dict[str, Sequence[tuple[str, str]]]:
        """What people call machines, whole names before short ones."""
        machines = [*self.machines.items(), *self.machine_names.items()]
        return {"machine": [(name, machine) for machine, name in machines]}


def choices(offered: Offered, builds: NamedBuilds) -> Choices:
    """What is offered, with the names of `offered.builds`."""
    newest = newest_machine(offered.machines)
    return Choices(
        machines={
            machine.machine_id: f"{machine.name} ({machine.device_name})" for machine in offered.machines
        },
        machine_names={machine.machine_id: machine.name for machine in offered.machines},
        builds=builds.names,
        offered_builds=list(builds.names),
        build_rows=builds.rows,
        suites=offered.suites,
        workloads=offered.workloads,
        strategies=theme.ordered(offered.strategies),
        runs={run.run_id: _run_words(run) for run in offered.runs},
        newest_machine=None if newest is None else newest.machine_id,
        newest_machines=[machine.machine_id for machine in newest_first(offered.machines)],
        newest_result_at=None if newest is None else newest.last_seen_at,
        oldest_run_at=offered.oldest_run_at,
    )


def _run_words(run: OfferedRun) -> str:
    return f"{units.moment(run.began)} · {'no suite' if run.suite is None else run.suite}"
