"""A machine's noise floor in words."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from db.judge.compare.noise_floor import TRIALS_A_SIDE, NoiseFloor
from db.wording import units
from db.wording.marks import bound_word
from db.wording.metrics import METRICS

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


def floor_sentence(floors: Iterable[NoiseFloor], metrics: Collection[str] = _BRIEFLY) -> str | None:
    """What a machine can show of these metrics; None where that was not measured."""
    words = floor_text(floors, metrics)
    return f"Smallest change that {TRIALS_A_SIDE} trials a side show here: {words}." if words else None
