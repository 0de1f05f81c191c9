"""What each machine was found to show: its newest validation, else its newest repeats of a case."""

from __future__ import annotations

import pandas as pd
from sqlalchemy import Connection

from db.engine.session import Database
from db.judge.compare.noise_floor import MIN_PROCESSES, NoiseFloor, noise_floors, scatters
from db.metrics.eligibility import without_canaries
from db.queries.filters import Filters
from db.queries.trials import trials_of_runs
from db.queries.validations import measured_machines, newest_parts, validation_trials
from db.records.trial import SourceKind

_RUNS = 50
_PARTS = 10
"""Runs of one build that are looked at for repeats, newest first."""


def read_noise_floors(database: Database) -> dict[str, tuple[NoiseFloor, ...]]:
    """Machine id -> the floors of its newest run of `compilewatch doctor --validate` that has any; of a
    machine without one those of the newest run that measured a case of one build often enough.
    """
    with database.read() as connection:
        floors = floors_by_machine(validation_trials(connection, None, runs=_RUNS))
        for machine_id in measured_machines(connection):
            if machine_id not in floors and (found := _of_repeats(connection, machine_id)):
                floors[machine_id] = found
    return floors


def _of_repeats(connection: Connection, machine_id: str) -> tuple[NoiseFloor, ...]:
    """None where no run among the newest has repeats. Machine and build are the same in all of them."""
    for run_id, build_id in newest_parts(connection, machine_id, trials=MIN_PROCESSES, limit=_PARTS):
        chosen = Filters(machines=(machine_id,), builds=(build_id,), sources=(SourceKind.MEASURED,))
        trials = trials_of_runs(connection, chosen, (run_id,))
        if len(trials) and (found := noise_floors(scatters(without_canaries(trials)))):
            return found
    return ()


def floors_by_machine(trials: pd.DataFrame | None) -> dict[str, tuple[NoiseFloor, ...]]:
    """Of each machine those of its newest run in `trials` that has any."""
    floors: dict[str, tuple[NoiseFloor, ...]] = {}
    if trials is None:
        return floors
    newest_first = trials.sort_values("started_at", ascending=False)
    for (machine_id, _run_id), mine in newest_first.groupby(["machine_id", "run_id"], sort=False):
        if str(machine_id) not in floors and (of_run := noise_floors(scatters(mine))):
            floors[str(machine_id)] = of_run
    return floors
