"""Targets in words: which are missed, which cannot be checked."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from db.units import MISSING, NEVER, duration, ratio, significant, size, steps
from db.verdicts.targets import AT_LEAST, TargetCheck

QUANTITIES: dict[str, tuple[str, Callable[..., str]]] = {
    "latency_p95_ns": ("p95 latency", duration),
    "throughput_per_s": ("throughput", lambda value: f"{significant(value)} per s"),
    "compile_cost_ns": ("compile cost", duration),
    "peak_bytes": ("peak memory", size),
    "speedup": ("speedup", ratio),
    "break_even_steps": ("break-even", steps),
}
"""What a target's quantity is called, and how its numbers are written."""


def target_lines(checks: Sequence[TargetCheck]) -> Iterator[str]:
    """One line per target that is missed or cannot be checked; nothing for those met."""
    for check in checks:
        if check.met is None:
            yield f"Target not checked: {_case(check)}: {_name(check)} is unknown."
        elif not check.met:
            yield f"Target missed: {_case(check)}: {_name(check)} is {_value(check)}, {limit_text(check)}."


def limit_text(check: TargetCheck) -> str:
    """What a target asks for, with its unit."""
    side = "at least" if check.quantity in AT_LEAST else "at most"
    return f"the target is {side} {QUANTITIES[check.quantity][1](check.limit)}"


def _case(check: TargetCheck) -> str:
    return f"{check.workload} / {check.strategy}"


def _name(check: TargetCheck) -> str:
    return QUANTITIES[check.quantity][0]


def _value(check: TargetCheck) -> str:
    if check.value is None:
        return NEVER if check.met is False else MISSING
    return QUANTITIES[check.quantity][1](check.value)
