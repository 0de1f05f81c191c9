"""What a reader can choose from, as names ready to show: made once per data version."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from typing import Any

from compilewatch.dashboard.read.shaping import build_names
from compilewatch.dashboard.text import theme
from compilewatch.db import units
from compilewatch.db.queries.facets import Offered, newest_first, newest_machine

NEWEST_RUNS = 200


@dataclass(frozen=True)
class Choices:
    """Ids to names, in the order in which they are offered; no machine means an empty database.

    `machines` have the device behind the name where it tells machines apart; `machines_with_device` always.
    """

    machines: Mapping[str, str]
    machines_with_device: Mapping[str, str]
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
    newest_results: Mapping[str, datetime]
    oldest_run_at: datetime | None

    def on_machine(self, machine: str, builds: Collection[str]) -> Choices:
        """The same with only these `builds` of a machine offered, named by what tells them apart, and its
        newest result.
        """
        measured = set(builds)
        mine = [key for key in self.builds if key in measured]
        names = build_names(self.build_rows[key] for key in mine)
        return replace(
            self,
            builds={**self.builds, **names},
            offered_builds=mine,
            newest_result_at=self.newest_results.get(machine),
        )

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
            "against": list(self.machines),
            "suite": self.suites,
            "workload": self.workloads,
            "strategy": self.strategies,
        }

    @cached_property
    def called(self) -> dict[str, Sequence[tuple[str, str]]]:
        """What people call machines, whole names before short ones."""
        machines = [*self.machines_with_device.items(), *self.machine_names.items()]
        names = [(name, machine) for machine, name in machines]
        return {"machine": names, "against": names}


def choices(offered: Offered, builds: Sequence[Mapping[str, Any]]) -> Choices:
    """What is offered, with the names of `builds`, as `db.queries.facets.build_rows` returns them."""
    newest = newest_machine(offered.machines)
    names = build_names(builds)
    with_device = {
        machine.machine_id: f"{machine.name} ({machine.device_name})" for machine in offered.machines
    }
    newest_results = {
        machine.machine_id: machine.last_seen_at
        for machine in offered.machines
        if machine.last_seen_at is not None
    }
    return Choices(
        machines=with_device | _distinct_names(offered),
        machines_with_device=with_device,
        machine_names={machine.machine_id: machine.name for machine in offered.machines},
        builds=names,
        offered_builds=list(names),
        build_rows={row["build_id"]: row for row in builds},
        suites=offered.suites,
        workloads=offered.workloads,
        strategies=theme.ordered(offered.strategies),
        runs={run.run_id: f"{units.moment(run.began)} · {run.suite or 'no suite'}" for run in offered.runs},
        newest_machine=None if newest is None else newest.machine_id,
        newest_machines=[machine.machine_id for machine in newest_first(offered.machines)],
        newest_result_at=max(newest_results.values(), default=None),
        newest_results=newest_results,
        oldest_run_at=offered.oldest_run_at,
    )


def _distinct_names(offered: Offered) -> dict[str, str]:
    """The names of the machines whose device another one has too, where no other has their name."""
    devices = Counter(machine.device_name for machine in offered.machines)
    names = Counter(machine.name for machine in offered.machines)
    return {
        machine.machine_id: machine.name
        for machine in offered.machines
        if devices[machine.device_name] > 1 and names[machine.name] == 1
    }
