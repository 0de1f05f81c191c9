"""A machine's noise floor in words."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from compilewatch.db import units
from compilewatch.db.columns.metrics import METRICS
from compilewatch.db.judge.policy import Policy
from compilewatch.db.judge.significance import trials_needed
from compilewatch.db.judge.statistics.noise_floor import TRIALS_A_SIDE, NoiseFloor, floor_of
from compilewatch.db.records.marks import bound_word
from compilewatch.db.records.vocabulary import Bound

SMALL_CHANGE = 0.03
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
    needed = max(int(trials_needed(floor.cv, SMALL_CHANGE)), Policy().minimum_trials)
    of_metric = f"{units.level(SMALL_CHANGE)} in {METRICS[floor.metric].word}"
    return f"{of_metric} needs {units.plural(needed, 'trial')}."
