"""What a reader can choose from, as names ready to show: made once per data version."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any

from dashboard import theme
from dashboard.named_builds import NamedBuilds
from db import units
from db.queries.offered import Offered, OfferedRun, newest_machine

NEWEST_RUNS = 200


@dataclass(frozen=True)
class Choices:
    """Ids to names, in the order in which they are offered; no machine means an empty database."""

    machines: Mapping[str, str]
    machine_names: Mapping[str, str]
    builds: Mapping[str, str]
    build_rows: Mapping[str, Mapping[str, Any]]
    suites: Sequence[str]
    workloads: Sequence[str]
    strategies: Sequence[str]
    runs: Mapping[str, str]
    newest_machine: str | None
    newest_result_at: datetime | None
    oldest_run_at: datetime | None

    @property
    def names(self) -> dict[str, Mapping[str, str]]:
        """The names that a sentence about a link needs."""
        builds = dict.fromkeys(("build", "base", "head"), self.builds)
        return {"machine": self.machines, **builds}

    @property
    def known(self) -> dict[str, Sequence[str]]:
        """The values of each selector that the database has."""
        return {
            "machine": list(self.machines),
            **{key: list(self.builds) for key in ("build", "base", "head")},
            "suite": self.suites,
            "workload": self.workloads,
            "strategy": self.strategies,
        }

    @cached_property
    def called(self) -> dict[str, Sequence[tuple[str, str]]]:
        """What people call the values of selectors that are ids, whole names before short ones."""
        machines = [*self.machines.items(), *self.machine_names.items()]
        whole = [(name, build) for build, name in self.builds.items()]
        torches = [(str(row["torch"]), build) for build, row in self.build_rows.items()]
        short = [(name, build) for torch, build in torches for name in (f"torch {torch}", torch)]
        # What is the whole name of one build means that one.
        taken = set(self.builds.values())
        builds = [*whole, *((name, build) for name, build in short if name not in taken)]
        return {
            "machine": [(name, machine) for machine, name in machines],
            **dict.fromkeys(("build", "base", "head"), builds),
        }


def choices(offered: Offered, builds: NamedBuilds) -> Choices:
    """What is offered, with the names of `offered.builds`."""
    newest = newest_machine(offered.machines)
    return Choices(
        machines={
            machine.machine_id: f"{machine.name} ({machine.device_name})" for machine in offered.machines
        },
        machine_names={machine.machine_id: machine.name for machine in offered.machines},
        builds=builds.names,
        build_rows=builds.rows,
        suites=offered.suites,
        workloads=offered.workloads,
        strategies=theme.ordered(offered.strategies),
        runs={run.run_id: _run_words(run) for run in offered.runs},
        newest_machine=None if newest is None else newest.machine_id,
        newest_result_at=None if newest is None else newest.last_seen_at,
        oldest_run_at=offered.oldest_run_at,
    )


def _run_words(run: OfferedRun) -> str:
    return f"{units.moment(run.began)} · {'no suite' if run.suite is None else run.suite}"
