"""What a profile says in words: what compiling changed, what the time is bound by, what is left to gain."""

from __future__ import annotations

from collections.abc import Callable

from compilewatch.db.cause.trial_words import StepTimes
from compilewatch.db.records.sampling_facts import Profile, ProfileSide
from compilewatch.db.units import MISSING, count, duration, significant, size

BUSY = 0.9
"""From here on a GPU has next to nothing to wait for."""
HOST_FIRST = 0.7
"""Below it a GPU waits for the host more than anything in the kernels can bring."""
LISTED = 10
"""So many kernels of a profile are shown."""
BOUND = 0.6
"""A share from which on the whole cannot become much faster while this part stays."""
NOTABLE = 0.05
"""A difference of kernel times that profiles of a few steps can tell."""


def kernels_ns(side: ProfileSide) -> float | None:
    """How long the GPU works in a step: profiling slows down the host and leaves kernels as they are."""
    return None if side.device_busy_fraction is None else side.device_busy_fraction * side.step_ns


def busy_fraction(side: ProfileSide, step_ns: float | None) -> float | None:
    """Share of a timed step in which the GPU works; None where one of both is not known."""
    kernels = kernels_ns(side)
    return None if kernels is None or not step_ns else min(1.0, kernels / step_ns)


def host_sentence(side: ProfileSide, step_ns: float | None) -> str:
    """That the host is where to look; empty where the GPU is busy enough, or its share is not known."""
    busy = busy_fraction(side, step_ns)
    if busy is None or busy >= HOST_FIRST:
        return ""
    return f"The GPU is busy {_percent(busy)} of the step: look at the host."


def why(profile: Profile, times: StepTimes) -> str:
    """One to four sentences; empty where the profile knows too little for any."""
    sentences = (_change(profile), _kernels(profile, times), _verdict(profile, times), _python(profile))
    return " ".join(filter(None, sentences))


def _change(profile: Profile) -> str:
    """ "412 launches per step became 61." """
    for name in ("launches", "operators"):
        own, eager = getattr(profile.own, name), getattr(profile.control, name, None)
        if own is None:
            continue
        if eager is None:
            return f"{_amount(own)} {name} per step."
        became = ", unchanged." if eager == own else f" became {_amount(own)}."
        return f"{_amount(eager)} {name} per step{became}"
    return ""


def _kernels(profile: Profile, times: StepTimes) -> str:
    """ "Kernels take 227 us of a step of 327 us; eager's take 221 us of 235 us." """
    own, eager = kernels_ns(profile.own), profile.control and kernels_ns(profile.control)
    if own is None:
        return ""
    of_step = f" of a step of {duration(times.own_ns)}" if times.own_ns else ""
    sentence = f"Kernels take {duration(own)}{of_step}"
    if eager:
        sentence += f"; eager's take {duration(eager)}"
        sentence += f" of {duration(times.eager_ns)}" if times.eager_ns else ""
    return f"{sentence}."


def _verdict(profile: Profile, times: StepTimes) -> str:
    own, matrix = profile.own, profile.own.matrix_fraction
    busy, longer = busy_fraction(own, times.own_ns), _longer(profile)
    if host_first := host_sentence(own, times.own_ns):
        return host_first
    if busy is not None and busy < BUSY:
        return f"The GPU waits for the host {_percent(1 - busy)} of the step."
    if longer >= NOTABLE:
        return f"Compiled kernels take {_percent(longer)} longer than eager's."
    if matrix is not None and matrix >= BOUND:
        return f"Bound by matrix products, {_percent(matrix)} of the work: little is left to gain."
    if busy is not None:
        return "Little is left to gain from fewer launches; the rest is in the kernels themselves."
    return ""


def _longer(profile: Profile) -> float:
    """By how much the kernels of the strategy take longer than eager's; 0 where that is not known."""
    own, eager = kernels_ns(profile.own), profile.control and kernels_ns(profile.control)
    return own / eager - 1 if own and eager else 0.0


def _python(profile: Profile) -> str:
    """Only where it is much: on a CPU the host is what computes."""
    own = profile.own
    if own.device_busy_fraction is not None or own.python_ns is None or own.step_ns == 0:
        return ""
    share = own.python_ns / own.step_ns
    return f"Python and guards take {_percent(share)} of a profiled step." if share >= 1 - BUSY else ""


def profile_rows(profile: Profile, times: StepTimes) -> list[tuple[str, str, str]]:
    """Figure, its text of eager (of the only side where that is eager), its text of the strategy."""
    texts: list[tuple[str, Callable[[ProfileSide, float | None], str | None]]] = [
        ("launches per step", lambda side, _: _known(side.launches, _amount)),
        ("kernels per step", lambda side, _: _known(side.kernels, _amount)),
        ("operators per step", lambda side, _: _known(side.operators, _amount)),
        ("kernel time per step", lambda side, _: _known(kernels_ns(side), duration)),
        ("step, as timed", lambda _, step_ns: _known(step_ns, duration)),
        ("GPU busy", lambda side, step_ns: _known(busy_fraction(side, step_ns), _percent)),
        ("host time in launches", lambda side, _: _known(side.launch_ns, duration)),
        ("Python and guards", lambda side, _: _known(side.python_ns, duration)),
        ("in matrix products", lambda side, _: _known(side.matrix_fraction, _percent)),
        ("step, while profiled", lambda side, _: duration(side.step_ns)),
    ]
    eager, own = (profile.control or profile.own), (profile.own if profile.control else None)
    rows = [
        (name, text(eager, times.eager_ns), text(own, times.own_ns) if own else None) for name, text in texts
    ]
    return [(name, first or MISSING, then or MISSING) for name, first, then in rows if first or then]


def longest_rows(profile: Profile, times: StepTimes) -> list[tuple[str, str, str, str]]:
    """Name, calls, self time and share of a step of what takes longest. Kernels are set against the timed
    step; operators, which profiling slows down as the step, against the profiled one.
    """
    step_ns = profile.own.step_ns if profile.own.device_busy_fraction is None else times.own_ns
    rows = []
    for each in profile.own.top[:LISTED]:
        share = _percent(each.self_ns / step_ns) if step_ns else MISSING
        rows.append((each.name, _amount(each.calls), duration(each.self_ns), share))
    return rows


def work_text(profile: Profile, times: StepTimes) -> str:
    """Operations and bytes of an eager step, and the rates at eager's time; empty where neither is known."""
    parts = []
    if profile.flops:
        parts.append(f"{_flops(profile.flops)} per step{_rate(profile.flops, times.eager_ns, _flops)}")
    if profile.bytes:
        moved = f"{size(profile.bytes)} read and written by its operators"
        parts.append(moved + _rate(profile.bytes, times.eager_ns, size))
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
