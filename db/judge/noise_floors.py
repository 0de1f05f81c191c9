"""What each machine was found to show: its newest validation, read from the trials that it stored."""

from __future__ import annotations

import pandas as pd
from sqlalchemy import Connection

from db.queries.validations import validation_trials
from db.session import Database
from db.verdicts.noise_floor import NoiseFloor, noise_floors, scatters

_RUNS = 50
_RUNS_OF_ONE = 3
"""The newest may have broken off before it had a figure."""


def read_noise_floors(database: Database) -> dict[str, tuple[NoiseFloor, ...]]:
    """Machine id -> the floors of its newest run of `compilewatch doctor --validate` that has any."""
    with database.read() as connection:
        return _floors(validation_trials(connection, None, runs=_RUNS))


def machine_noise_floors(connection: Connection, machine_id: str) -> tuple[NoiseFloor, ...]:
    """The same of one machine."""
    return _floors(validation_trials(connection, machine_id, runs=_RUNS_OF_ONE)).get(machine_id, ())


def _floors(trials: pd.DataFrame | None) -> dict[str, tuple[NoiseFloor, ...]]:
    floors: dict[str, tuple[NoiseFloor, ...]] = {}
    if trials is None:
        return floors
    newest_first = trials.sort_values("started_at", ascending=False)
    for (machine_id, _run_id), mine in newest_first.groupby(["machine_id", "run_id"], sort=False):
        if str(machine_id) not in floors and (found := noise_floors(scatters(mine))):
            floors[str(machine_id)] = found
    return floors
