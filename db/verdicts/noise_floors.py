"""What each machine was found to show: its newest validation, else its newest repeats of a case."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

import pandas as pd

from compilewatch.db import units
from compilewatch.db.columns.metrics import METRICS
from compilewatch.db.engine.session import Database
from compilewatch.db.judge.policy import Policy
from compilewatch.db.judge.significance import trials_needed
from compilewatch.db.judge.statistics.noise_floor import (
    MIN_PROCESSES,
    TRIALS_A_SIDE,
    NoiseFloor,
    floor_of,
    noise_floors,
    scatters,
)
from compilewatch.db.metrics.eligibility import without_canaries
from compilewatch.db.queries.trials import measured_machines, newest_repeats, validation_trials
from compilewatch.db.records.trial import bound_word
from compilewatch.db.records.vocabulary import Bound

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


_SMALL_CHANGE = 0.03
"""A change of which people ask whether a machine can show it."""
_BRIEFLY = ("device_time", "latency", "speedup")


def floor_text(floors: Iterable[NoiseFloor], metrics: Collection[str] = _BRIEFLY) -> str:
    """The smallest changes of these metrics, "" where there is none: "latency 2.50 %, speedup 1.10 %".

    Where a metric has two classes: "latency 1.20 % (device-bound), 9.50 % (host-bound)".
    """
    cases_by_floor: dict[str, list[str]] = {}
    for floor in floors:
        if floor.metric in metrics:
            of_class = f" ({bound_word(floor.bound)})" if floor.bound else ""
            cases_by_floor.setdefault(floor.metric, []).append(f"{units.percent(floor.change)}{of_class}")
    return ", ".join(
        f"{METRICS[metric].word} {', '.join(changes)}" for metric, changes in cases_by_floor.items()
    )


def smallest_change(floors: Iterable[NoiseFloor], metric: str, bound: object) -> float | None:
    """The smallest change of `metric`, as a fraction, that cases of the class `bound` show; None where that
    is not known.
    """
    floor = floor_of(floors, metric, Bound(bound) if isinstance(bound, str) else None)
    return None if floor is None else floor.change


def floor_sentence(floors: Iterable[NoiseFloor], metrics: Collection[str] = _BRIEFLY) -> str | None:
    """What a machine can show of these metrics; None where that was not measured."""
    known = tuple(floors)
    words = floor_text(known, metrics)
    if not words:
        return None
    return (
        f"Smallest detectable change with {TRIALS_A_SIDE} trials a side: {words}. {_example(known, metrics)}"
    )


def _example(floors: Sequence[NoiseFloor], metrics: Collection[str]) -> str:
    """How many trials a small change of latency takes; of the only metric where that is another one."""
    named = [floor for floor in floors if floor.metric in metrics]
    floor = floor_of(named, "latency") or named[0]
    needed = max(int(trials_needed(floor.cv, _SMALL_CHANGE)), Policy().minimum_trials)
    of_metric = f"{units.level(_SMALL_CHANGE)} in {METRICS[floor.metric].word}"
    return f"{of_metric} needs {units.plural(needed, 'trial')}."
