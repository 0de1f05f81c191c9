"""What each machine was found to show: its newest validation, read from the trials that it stored."""

from __future__ import annotations

import pandas as pd

from db.engine.session import Database
from db.judge.compare.noise_floor import NoiseFloor, noise_floors, scatters
from db.queries.validations import validation_trials

_RUNS = 50


def read_noise_floors(database: Database) -> dict[str, tuple[NoiseFloor, ...]]:
    """Machine id -> the floors of its newest run of `compilewatch doctor --validate` that has any."""
    with database.read() as connection:
        return floors_by_machine(validation_trials(connection, None, runs=_RUNS))


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
