"""What a profile says in words: what compiling changed, what the time is bound by, what is left to gain."""

from __future__ import annotations

from collections.abc import Callable

from db.diagnosis import Profile, ProfileSide
from db.units import MISSING, count, duration, significant, size

BUSY = 0.9
"""From here on a GPU has next to nothing to wait for."""
BOUND = 0.6
"""A share from which on the whole cannot become much faster while this part stays."""


def why(profile: Profile) -> str:
    """One to three sentences; empty where the profile knows too little for any."""
    return " ".join(part for part in (_change(profile), _verdict(profile), _python(profile)) if part)


def _change(profile: Profile) -> str:
    """ "412 launches a step became 61; the GPU was busy 61 % of the time and is now 93 %." """
    clauses = []
    for name in ("launches", "operators"):
        own, eager = getattr(profile.own, name), getattr(profile.control, name, None)
        if own is not None:
            clauses.append(
                f"{_amount(own)} {name} a step"
                if eager is None
                else f"{_amount(eager)} {name} a step became {_amount(own)}"
            )
            break
    busy, before = profile.own.device_busy_fraction, getattr(profile.control, "device_busy_fraction", None)
    if busy is not None:
        clauses.append(
            f"the GPU was busy {_percent(busy)} of the time"
            if before is None
            else f"the GPU was busy {_percent(before)} of the time and is now {_percent(busy)}"
        )
    text = "; ".join(clauses)
    return f"{text[0].upper()}{text[1:]}." if text else ""


def _verdict(profile: Profile) -> str:
    own = profile.own
    busy, matrix = own.device_busy_fraction, own.matrix_fraction
    if busy is not None and busy < BUSY:
        return f"It still waits for the host {_percent(1 - busy)} of the time."
    if matrix is not None and matrix >= BOUND:
        return f"Bound by matrix products, {_percent(matrix)} of the work: little is left to gain."
    if busy is not None:
        return "Little is left to gain from fewer launches; the rest is in the kernels themselves."
    return ""


def _python(profile: Profile) -> str:
    """Only where it is much: on a CPU the host is what computes."""
    own = profile.own
    if own.device_busy_fraction is not None or own.python_ns is None or own.step_ns == 0:
        return ""
    share = own.python_ns / own.step_ns
    return f"Python and guards take {_percent(share)} of a step." if share >= 1 - BUSY else ""


def profile_rows(profile: Profile) -> list[tuple[str, str, str]]:
    """Figure, its text of eager (of the only side where that is eager), its text of the strategy."""
    texts: list[tuple[str, Callable[[ProfileSide], str | None]]] = [
        ("launches per step", lambda side: _known(side.launches, _amount)),
        ("kernels per step", lambda side: _known(side.kernels, _amount)),
        ("operators per step", lambda side: _known(side.operators, _amount)),
        ("GPU busy", lambda side: _known(side.device_busy_fraction, _percent)),
        ("host time in launches", lambda side: _known(side.launch_ns, duration)),
        ("Python and guards", lambda side: _known(side.python_ns, duration)),
        ("in matrix products", lambda side: _known(side.matrix_fraction, _percent)),
        ("step, while profiled", lambda side: duration(side.step_ns)),
    ]
    eager, own = (profile.control or profile.own), (profile.own if profile.control else None)
    rows = [(name, text(eager), text(own) if own else None) for name, text in texts]
    return [(name, first or MISSING, then or MISSING) for name, first, then in rows if first or then]


def work_text(profile: Profile, latency_ns: float | None) -> str:
    """Operations and bytes of an eager step, and the rates at `latency_ns`; empty where neither is known."""
    parts = []
    if profile.flops:
        parts.append(f"{_flops(profile.flops)} a step{_rate(profile.flops, latency_ns, _flops)}")
    if profile.bytes:
        moved = f"{size(profile.bytes)} read and written by its operators"
        parts.append(moved + _rate(profile.bytes, latency_ns, size))
    return "; ".join(parts)


def _rate(amount: int, latency_ns: float | None, formatter: Callable[[float], str]) -> str:
    return f" ({formatter(amount / latency_ns * 1e9)}/s)" if latency_ns else ""


def _flops(operations: float) -> str:
    units = ("", "k", "M", "G", "T", "P", "E")
    power = 0
    while operations >= 1000 and power < len(units) - 1:
        operations, power = operations / 1000, power + 1
    return f"{significant(operations)} {units[power]}FLOP"


def _known(value: float | None, formatter: Callable[[float], str]) -> str | None:
    return None if value is None else formatter(value)


def _amount(value: float) -> str:
    return count(value) if float(value).is_integer() else significant(value)


def _percent(fraction: float) -> str:
    return f"{round(100 * fraction)} %"
