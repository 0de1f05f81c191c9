"""What each machine was found to show: its newest validation, read from the trials that it stored."""

from __future__ import annotations

from db.queries import facets
from db.queries.filters import Filters
from db.queries.trials import trials_frame
from db.session import Database
from db.verdicts.noise_floor import VALIDATION_SUITE, NoiseFloor, noise_floors, scatters

_RUNS = 50


def read_noise_floors(database: Database) -> dict[str, tuple[NoiseFloor, ...]]:
    """Machine id -> the floors of its newest run of `compilewatch doctor --validate` that has any."""
    # By run, which trials are found by quickly: most are of other suites.
    runs = facets.runs(database, newest=_RUNS, suite=VALIDATION_SUITE)["run_id"]
    if runs.empty:
        return {}
    found = trials_frame(database, Filters(runs=tuple(runs)))
    newest_first = found.sort_values("started_at", ascending=False)
    floors: dict[str, tuple[NoiseFloor, ...]] = {}
    for (machine_id, _run_id), mine in newest_first.groupby(["machine_id", "run_id"], sort=False):
        if str(machine_id) not in floors and (of_run := noise_floors(scatters(mine))):
            floors[str(machine_id)] = of_run
    return floors
