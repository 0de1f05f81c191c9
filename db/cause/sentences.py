"""Why a step got slower or faster, in a sentence that names kernels. Nothing is said without evidence."""

from __future__ import annotations

from collections.abc import Sequence
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
from compilewatch.db.cause.profile_words import why
from compilewatch.db.cause.trial_words import StepTimes, step_times
from compilewatch.db.records.sampling_facts import ProfileSide
from compilewatch.db.records.trial import Trial
from compilewatch.db.units import count, duration, significant, size

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
