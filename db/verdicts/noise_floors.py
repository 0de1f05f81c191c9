"""What each machine was found to show: its newest validation, else its newest repeats of a case."""

from __future__ import annotations

from collections.abc import Iterable

import pandas as pd

from compilewatch.db.engine.session import Database
from compilewatch.db.judge.statistics.noise_floor import MIN_PROCESSES, NoiseFloor, noise_floors, scatters
from compilewatch.db.metrics.eligibility import without_canaries
from compilewatch.db.queries.cases.validations import measured_machines, newest_repeats, validation_trials

_RUNS = 50
_PARTS = 10
"""Runs of one build that are looked at for repeats, newest first."""


def read_noise_floors(database: Database, machine: str | None = None) -> dict[str, tuple[NoiseFloor, ...]]:
    """Machine id (of one or of all) -> the floors of its newest `compilewatch doctor --validate` with any;
    of a machine without one those of the newest run that measured a case of one build often enough.
    """
    with database.read() as connection:
        floors = floors_by_machine(validation_trials(connection, machine, runs=_RUNS))
        for each in measured_machines(connection) if machine is None else [machine]:
            if each not in floors and (
                repeats := _of_repeats(newest_repeats(connection, each, trials=MIN_PROCESSES, limit=_PARTS))
            ):
                floors[each] = repeats
    return floors


def _of_repeats(newest_first: Iterable[pd.DataFrame]) -> tuple[NoiseFloor, ...]:
    """Of the first of these runs of one build that has a floor; none where none has."""
    candidates = (noise_floors(scatters(without_canaries(trials))) for trials in newest_first if len(trials))
    return next(filter(None, candidates), ())


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
