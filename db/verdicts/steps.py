"""Every step that a machine's history shows, counted alike by commands, pages and the API."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from pandas import DataFrame

from db.engine.session import Database
from db.errors import NotFoundError
from db.judge.history.machine import EventGroup, machine_history
from db.judge.history.releases import Compare
from db.judge.policy import Policy
from db.queries.filters import Filters
from db.queries.named import require_stored
from db.queries.trials import trials_frame
from db.units import count, plural
from db.verdicts import gateway

SCHEMA = "compilewatch.changes/1"


@dataclass(frozen=True)
class MachineSteps:
    """The grouped steps of one machine, newest last, the trials that they were found in, and what judges two
    sides of them.
    """

    groups: tuple[EventGroup, ...]
    trials: DataFrame
    compare: Compare
    policy: Policy

    @property
    def sentence(self) -> str:
        """ "3 changes in 13 series over 20 runs on gpu-box"."""
        runs, series = (self.trials[name].nunique() for name in ("run_id", "series_id"))
        name = str(self.trials["machine"].iloc[-1])
        measured = f"{count(series)} series over {plural(runs, 'run')} on {name}"
        return f"{plural(len(self.groups), 'change')} in {measured}"

    def document(self, more: str = "") -> dict[str, Any]:
        """What `history --json` prints without a case; `more` follows the sentence."""
        newest = self.trials.iloc[-1]
        return {
            "schema": SCHEMA,
            "machine": {"id": str(newest["machine_id"]), "name": str(newest["machine"])},
            "sentence": f"{self.sentence}.{more}",
            "groups": [group.model_dump(mode="json") for group in self.groups],
            "policy": self.policy.to_json(),
        }


def machine_steps(
    database: Database, filters: Filters, policy: Policy, *, machine: str | None = None
) -> MachineSteps:
    """Of the machine with most runs that `filters` let through, or of `machine`.

    Raises NotFoundError where nothing fits.
    """
    require_stored(database, replace(filters, machines=() if machine is None else (machine,)))
    trials = _of_one_machine(trials_frame(database, filters), machine)
    machine_id = str(trials["machine_id"].iloc[-1])
    compare = partial(gateway.compare, database, filters=filters, machine_id=machine_id, policy=policy)
    return MachineSteps(machine_history(trials, compare, policy), trials, compare, policy)


def _of_one_machine(trials: DataFrame, machine: str | None) -> DataFrame:
    runs = trials.groupby("machine_id")["run_id"].nunique().sort_values(kind="stable")
    if runs.empty:
        raise NotFoundError("No stored trial fits these filters.", "See `compilewatch list runs`.")
    chosen = str(runs.index[-1]) if machine is None else machine
    if chosen not in runs:
        known = ", ".join(str(each) for each in runs.index)
        raise NotFoundError(f"Nothing was measured on machine {chosen}.", f"Measured on {known}.")
    return trials[trials["machine_id"] == chosen]
