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
    here = filters if machine is None else replace(filters, machines=(machine,))
    require_stored(database, here)
    trials = trials_frame(database, here)
    if trials.empty:
        where = "" if machine is None else f" on machine {machine}"
        raise NotFoundError(f"No stored trial{where} fits these filters.", "See `compilewatch list runs`.")
    if machine is None:
        runs = trials.groupby("machine_id")["run_id"].nunique().sort_values(kind="stable")
        trials = trials[trials["machine_id"] == runs.index[-1]]
    machine_id = str(trials["machine_id"].iloc[-1])
    compare = partial(gateway.compare, database, filters=filters, machine_id=machine_id, policy=policy)
    return MachineSteps(machine_history(trials, compare, policy), trials, compare, policy)
