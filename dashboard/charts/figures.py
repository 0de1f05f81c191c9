"""The figures of a case that have a history: what they are called, where they stand, how they are said."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from db import units


@dataclass(frozen=True)
class Figure:
    """One figure of a case: its columns, its unit on the axis, how it is said, and which way is good.

    `band` are the columns drawn around the line, `interval` those of the 95 % interval, where there is one.
    """

    word: str
    column: str
    band: tuple[str, str]
    interval: tuple[str, str] | None
    divisor: float
    unit: str
    say: Callable[[float], str]
    higher_is_better: bool
    eager_too: bool


def _trial_spread(column: str) -> tuple[str, str]:
    return f"{column}_p10", f"{column}_p90"


FIGURES: dict[str, Figure] = {
    "speedup": Figure(
        word="Speedup",
        column="speedup",
        band=_trial_spread("speedup"),
        interval=("speedup_low", "speedup_high"),
        divisor=1,
        unit="x over eager",
        say=units.ratio,
        higher_is_better=True,
        eager_too=False,
    ),
    "latency": Figure(
        word="Latency",
        column="latency_ns",
        band=_trial_spread("latency_ns"),
        interval=("latency_low_ns", "latency_high_ns"),
        divisor=1e6,
        unit="ms",
        say=units.duration,
        higher_is_better=False,
        eager_too=True,
    ),
    "compile_cost": Figure(
        word="Compile cost",
        column="compile_cost_ns",
        band=_trial_spread("compile_cost_ns"),
        interval=("compile_cost_low_ns", "compile_cost_high_ns"),
        divisor=1e9,
        unit="s",
        say=units.duration,
        higher_is_better=False,
        eager_too=False,
    ),
    "peak_memory": Figure(
        word="Peak memory",
        column="peak_bytes",
        band=_trial_spread("peak_bytes"),
        interval=None,
        divisor=2**20,
        unit="MiB",
        say=units.size,
        higher_is_better=False,
        eager_too=True,
    ),
    "break_even": Figure(
        word="Break-even",
        column="break_even_steps",
        band=("break_even_low", "break_even_high"),
        interval=("break_even_low", "break_even_high"),
        divisor=1,
        unit="steps",
        say=units.steps,
        higher_is_better=False,
        eager_too=False,
    ),
}
