"""Why a step got slower or faster, in a sentence that names kernels. Nothing is said without evidence.

What a profile says in words: what compiling changed, what the time is bound by, what is left to gain.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from compilewatch.db.cause.families import Family
from compilewatch.db.cause.profile_change import (
    Finding,
    FindingKind,
    ProfileChange,
    compare_profiles,
    findings,
    is_disturbed,
)
from compilewatch.db.cause.trial_words import StepTimes, step_times
from compilewatch.db.records.sampling_facts import Profile, ProfileSide
from compilewatch.db.records.trial import Trial
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


NAMED = 3
"""So many findings stand in a sentence at most."""
HOST_PAYS = 1.1
"""A host time that grew by less, in one process and by turns, is no finding."""
_NAME_LENGTH = 60


@dataclass(frozen=True)
class Cause:
    """What two profiles say of a change. `sentence` is None where they show no cause."""

    sentence: str | None
    change: ProfileChange
    findings: tuple[Finding, ...]

    def to_json(self) -> dict[str, Any]:
        """For documents: the sentence, what was found, and every family's time in nanoseconds of a step."""
        return {
            "sentence": self.sentence,
            "before_ns": round(self.change.before_ns),
            "after_ns": round(self.change.after_ns),
            "findings": [
                {"kind": each.kind.value, "family": each.family.value}
                | {"before": each.before, "after": each.after}
                | {"before_ns": round(each.before_ns), "after_ns": round(each.after_ns)}
                for each in self.findings
            ],
            "families": [
                {"family": each.family.value}
                | {"before_ns": round(each.before_ns), "after_ns": round(each.after_ns)}
                | {"before_calls": each.before_calls, "after_calls": each.after_calls}
                for each in self.change.families
            ],
        }


@dataclass(frozen=True)
class Watched:
    """A profile, and what a step took where nothing profiled it, in nanoseconds; None where not known."""

    side: ProfileSide
    timed_ns: float | None


def cause_between(before: Watched, after: Watched) -> Cause | None:
    """What differs between two profiles; None where they cannot be compared. Of a host, a sentence needs both
    undisturbed.
    """
    change = compare_profiles(before.side, after.side)
    if change is None:
        return None
    finding_list = findings(change)
    disturbed = any(is_disturbed(each.side, each.timed_ns) for each in (before, after))
    return Cause(None if disturbed else _change_sentence(change, finding_list), change, finding_list)


def cause_of_compiling(trial: Trial) -> Cause | None:
    """What compiling changed, eager against compiled in one process; None without both profiles."""
    profile = trial.profile
    if profile is None or profile.control is None:
        return None
    times = step_times(trial)
    cause = cause_between(Watched(profile.control, times.eager_ns), Watched(profile.own, times.own_ns))
    if cause is None:
        return None
    sentence = cause.sentence
    if sentence is None and cause.change.on_device:
        sentence = _host_sentence(trial, cause.change)
    elif not cause.change.on_device and not _timed_alike(times, cause.change):
        sentence = None
    return Cause(sentence, cause.change, cause.findings)


def _timed_alike(times: StepTimes, change: ProfileChange) -> bool:
    """Whether the timed steps of a CPU differ in the direction of the profiled ones: profiling costs a step
    of many operators more than one of few.
    """
    if not times.own_ns or not times.eager_ns:
        return False
    slower = change.after_ns > change.before_ns
    ratio = times.own_ns / times.eager_ns if slower else times.eager_ns / times.own_ns
    return ratio >= HOST_PAYS


def explained(trial: Trial) -> str:
    """Why a step of a trial takes its time: what compiling changed, then launches, kernels and bounds; empty
    without a profile.
    """
    if trial.profile is None:
        return ""
    cause = cause_of_compiling(trial)
    rest = why(trial.profile, step_times(trial))
    return " ".join(filter(None, (cause.sentence if cause else None, rest)))


def _change_sentence(change: ProfileChange, finding_list: Sequence[Finding]) -> str | None:
    """ "Slower on the device (6.33 ms became 11.0 ms a step): attention lost its fused kernel ..." """
    size = change.after_ns - change.before_ns
    mine = [each for each in finding_list if each.delta_ns * size > 0][:NAMED]
    if not mine or abs(size) < change.smallest_ns:
        return None
    where = " on the device" if change.on_device else ""
    times = f"{duration(change.before_ns)} became {duration(change.after_ns)} a step"
    return f"{'Slower' if size > 0 else 'Faster'}{where} ({times}): {'; '.join(map(finding_text, mine))}."


def _host_sentence(trial: Trial, change: ProfileChange) -> str | None:
    """Where the device gained nothing and the caller waits longer: the host it is."""
    if abs(change.after_ns - change.before_ns) >= change.smallest_ns:
        return None
    device = f"from {duration(change.before_ns)} to {duration(change.after_ns)}"
    for name, what in _HOST_CLOCKS:
        control, own = (getattr(trial, field) for field in (f"control_{name}", name))
        if len(control) and len(own):
            before, after = median(control), median(own)
            if after >= HOST_PAYS * before:
                host = f"{what} from {duration(before)} to {duration(after)}"
                return f"The device gained nothing and the host pays. Device time went {device}, {host}."
    return None


# Issue time is the host's alone; the wall time of a step shows the host where the device did not move.
_HOST_CLOCKS = (("issue_ns", "issuing a step"), ("host_samples_ns", "a synchronised step"))


_TEXTS = {
    FindingKind.LOST_FUSED_ATTENTION: (
        "attention lost its fused kernel ({before}, {old}) and runs unfused{in_after} ({new})"
    ),
    FindingKind.GAINED_FUSED_ATTENTION: (
        "attention runs in a fused kernel ({after}, {new}) where it ran unfused{in_before} ({old})"
    ),
    FindingKind.OTHER_ATTENTION: "attention runs {after} ({new}) instead of {before} ({old})",
    FindingKind.LEFT_TENSOR_CORES: "matrix products left the tensor cores{in_after} ({old} became {new})",
    FindingKind.REACHED_TENSOR_CORES: (
        "matrix products reached the tensor cores{in_after} ({old} became {new})"
    ),
    FindingKind.OTHER_PRECISION: ("matrix products run in {after} instead of {before} ({old} became {new})"),
    FindingKind.COPIES: "{copies} ({old} became {new})",
    FindingKind.FUSIBLE: (
        "pointwise work, reductions and copies take {new} in {after} instead of {old} in {before}"
    ),
    FindingKind.KERNEL: "{kernel} takes {new} instead of {old}",
    FindingKind.FAMILY: "{family} {takes} {new} instead of {old}",
}
_PLURAL = (Family.MATRIX, Family.COPY, Family.COLLECTIVE, Family.HOST)


def finding_text(finding: Finding) -> str:
    return _TEXTS[finding.kind].format(
        old=_time(finding.before_ns),
        new=_time(finding.after_ns),
        before=finding.before,
        after=finding.after,
        in_before=f" in {finding.before}" if finding.before else "",
        in_after=f" in {finding.after}" if finding.after else "",
        family=finding.family.value,
        takes="take" if finding.family in _PLURAL else "takes",
        kernel=short_name(finding.after or ""),
        copies=_copies(finding),
    )


def _time(ns: float) -> str:
    return duration(ns) if ns else "none"


def _copies(finding: Finding) -> str:
    more = finding.calls or 0
    if round(more) == 0:
        return "copies and casts"
    number = count(abs(more)) if float(more).is_integer() else significant(abs(more))
    noun = "copy or cast" if abs(more) == 1 else "copies and casts"
    # In both directions alike: fewer copies that move more have no size.
    moved = finding.bytes or 0
    much = f" of {size(abs(moved))}" if moved * more > 0 else ""
    return f"{number} {'more' if more > 0 else 'fewer'} {noun}{much} a step"


def short_name(name: str) -> str:
    """A kernel's name without its template arguments, as long as a line bears."""
    plain = name.removeprefix("void ")
    head = plain.replace("(anonymous namespace)", "").split("<")[0].split("(")[0].replace("::::", "::")
    shown = head if len(head) > len("cutlass::Kernel2") or "<" not in plain else plain
    return shown if len(shown) <= _NAME_LENGTH else f"{shown[:_NAME_LENGTH]}…"


def family_rows(change: ProfileChange) -> list[dict[str, str]]:
    """Every family on both sides in words, the largest difference first, and what is not listed."""
    rows = [
        {"family": each.family.value, "before": _time(each.before_ns), "after": _time(each.after_ns)}
        for each in change.families
    ]
    rests, works = (change.before_rest_ns, change.after_rest_ns), (change.before_ns, change.after_ns)
    if all(rest < 0.01 * work for rest, work in zip(rests, works, strict=True)):
        return rows
    return [*rows, {"family": "not listed", "before": duration(rests[0]), "after": duration(rests[1])}]
