"""What a reader can choose from, as names ready to show: drawn from the facets once per data version."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pandas as pd

from dashboard import theme
from dashboard.named_builds import NamedBuilds
from dashboard.shaping import row_dicts
from db import units

NEWEST_RUNS = 200


@dataclass(frozen=True)
class Choices:
    """Ids to names, in the order in which they are offered; no machine means an empty database."""

    machines: Mapping[str, str]
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


def choices(
    *,
    machines: pd.DataFrame,
    builds: NamedBuilds,
    workloads: pd.DataFrame,
    strategies: pd.DataFrame,
    suites: pd.DataFrame,
    runs: pd.DataFrame,
    oldest_run_at: datetime | None,
) -> Choices:
    """From the frames of `db.queries.facets`, each in its own order; of `runs` the `NEWEST_RUNS`."""
    empty = machines.empty
    return Choices(
        machines={
            row["machine_id"]: f"{row['machine']} ({row['device_name']})" for row in row_dicts(machines)
        },
        builds=builds.names,
        build_rows=builds.rows,
        suites=[str(suite) for suite in suites["suite"]],
        workloads=sorted(set(workloads["workload"])),
        strategies=theme.ordered(strategies["strategy"]),
        runs={row["run_id"]: _run_words(row) for row in row_dicts(runs)},
        newest_machine=None if empty else str(machines.sort_values("last_seen_at")["machine_id"].iloc[-1]),
        newest_result_at=None if empty else machines["last_seen_at"].max(),
        oldest_run_at=oldest_run_at,
    )


def _run_words(run: Mapping[str, Any]) -> str:
    suite = run["suite"] if isinstance(run["suite"], str) else "no suite"
    return f"{units.moment(run['started_at'])} · {suite}"
