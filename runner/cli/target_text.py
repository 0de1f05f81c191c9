"""Targets in words: which are missed, which cannot be checked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from db.units import MISSING, NEVER
from db.verdicts.targets import AT_LEAST, TargetCheck
from db.wording.metrics import BY_COLUMN


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
    return f"the target is {side} {BY_COLUMN[check.quantity].write(check.limit)}"


def _case(check: TargetCheck) -> str:
    return f"{check.workload} / {check.strategy}"


def _name(check: TargetCheck) -> str:
    return BY_COLUMN[check.quantity].word


def _value(check: TargetCheck) -> str:
    if check.value is None:
        return NEVER if check.met is False else MISSING
    return BY_COLUMN[check.quantity].write(check.value)
