"""Two profiles against each other, kernel by kernel and by family, and what that shows.

Times are nanoseconds of a step. A profile lists the kernels that take longest; what it does not list may be
of any family, so only what is more than that is a finding.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import NamedTuple

from compilewatch.db.cause.families import UNFUSED, Family, Kernel, canonical, classify
from compilewatch.db.records.sampling_facts import ProfileSide
from compilewatch.db.units import plural


@dataclass(frozen=True)
class NotableFrom:
    """`share` of a step, and `ratio` of a part to itself, from which on a difference is no noise."""

    share: float
    ratio: float


DEVICE = NotableFrom(share=0.05, ratio=1.15)
"""Kernel times of two processes agree to a few percent."""
HOST = NotableFrom(share=0.15, ratio=1.7)
"""On a CPU five steps are watched beside whatever else the host does."""


DISTURBED = 1.4
"""A host whose profiled work takes longer than the timed step by more did something else beside it."""


@dataclass(frozen=True)
class PartChange:
    """Of a part of a step on both sides; 0 where a side does not list it."""

    before_ns: float
    after_ns: float
    before_calls: float
    after_calls: float

    @property
    def delta_ns(self) -> float:
        """Positive where it takes longer now."""
        return self.after_ns - self.before_ns


@dataclass(frozen=True)
class KernelChange(PartChange):
    name: str
    kernel: Kernel


@dataclass(frozen=True)
class FamilyChange(PartChange):
    """All listed kernels of a family."""

    family: Family


@dataclass(frozen=True)
class ProfileChange:
    """`before_ns` and `after_ns` are the work of a step; of it, `*_rest_ns` are of kernels not listed."""

    on_device: bool
    before_ns: float
    after_ns: float
    before_rest_ns: float
    after_rest_ns: float
    families: tuple[FamilyChange, ...]
    kernels: tuple[KernelChange, ...]
    copied_bytes: int | None = None
    """How many more bytes copies and casts read and write after than before; None where a side is unknown."""

    @property
    def threshold(self) -> NotableFrom:
        """What counts as a difference between these profiles."""
        return DEVICE if self.on_device else HOST

    @property
    def smallest_ns(self) -> float:
        """The smallest difference of a part that counts."""
        return self.threshold.share * max(self.before_ns, self.after_ns)


FUSIBLE = (Family.POINTWISE, Family.REDUCTION, Family.COPY, Family.GENERATED)
"""Inductor fuses these with each other, so work of one moves to another without any gain or loss."""


class FindingKind(StrEnum):
    LOST_FUSED_ATTENTION = "lost_fused_attention"
    GAINED_FUSED_ATTENTION = "gained_fused_attention"
    OTHER_ATTENTION = "other_attention"
    LEFT_TENSOR_CORES = "left_tensor_cores"
    REACHED_TENSOR_CORES = "reached_tensor_cores"
    OTHER_PRECISION = "other_precision"
    COPIES = "copies"
    FUSIBLE = "fusible"
    KERNEL = "kernel"
    FAMILY = "family"


@dataclass(frozen=True)
class Finding:
    """`before` and `after` name what ran: a kind of attention, a precision, a kernel. `calls` says how many
    more there are in a step, `bytes` how many more they read and write. Times in nanoseconds.
    """

    kind: FindingKind
    family: Family
    before_ns: float
    after_ns: float
    before: str | None = None
    after: str | None = None
    calls: float | None = None
    bytes: int | None = None

    @property
    def delta_ns(self) -> float:
        """Positive where it takes longer now."""
        return self.after_ns - self.before_ns


def compare_profiles(before: ProfileSide, after: ProfileSide) -> ProfileChange | None:
    """None where a side lists nothing, or only one of them was watched on a device."""
    on_device = before.device_busy_fraction is not None
    if not before.top or not after.top or on_device != (after.device_busy_fraction is not None):
        return None
    listed = _merged(before), _merged(after)
    changes = []
    for name in {**listed[0], **listed[1]}:
        (old_ns, old_calls), (new_ns, new_calls) = (each.get(name, _NONE) for each in listed)
        changes.append(KernelChange(old_ns, new_ns, old_calls, new_calls, name, classify(name)))
    kernels = _with_unfused(sorted(changes, key=lambda each: -abs(each.delta_ns)))
    works, times = (_work_ns(before), _work_ns(after)), _times_ns(kernels)
    return ProfileChange(
        on_device=on_device,
        before_ns=works[0],
        after_ns=works[1],
        before_rest_ns=max(0.0, works[0] - times[0]),
        after_rest_ns=max(0.0, works[1] - times[1]),
        families=_families(kernels),
        kernels=tuple(kernels),
        copied_bytes=None
        if before.copied_bytes is None or after.copied_bytes is None
        else after.copied_bytes - before.copied_bytes,
    )


class _Spent(NamedTuple):
    ns: float
    calls: float


_NONE = _Spent(0.0, 0.0)


def _times_ns(changes: Iterable[PartChange]) -> tuple[float, float]:
    """Of all together, before and after."""
    some = list(changes)
    return sum(each.before_ns for each in some), sum(each.after_ns for each in some)


def _calls(changes: Iterable[PartChange]) -> tuple[float, float]:
    some = list(changes)
    return sum(each.before_calls for each in some), sum(each.after_calls for each in some)


def is_disturbed(side: ProfileSide, timed_ns: float | None) -> bool:
    """Whether a profile shows more than the step: on a CPU, where whatever else runs is in its times, work
    that is longer than the step was without the profiler. Unknown is disturbed. A device has its time for
    itself.
    """
    if side.device_busy_fraction is not None:
        return False
    return timed_ns is None or sum(entry.self_ns for entry in side.top) > DISTURBED * timed_ns


def _merged(side: ProfileSide) -> dict[str, _Spent]:
    """Time and calls by name without Inductor's numbers."""
    spent: dict[str, _Spent] = {}
    for entry in side.top:
        name = canonical(entry.name)
        before = spent.get(name, _NONE)
        spent[name] = _Spent(before.ns + entry.self_ns, before.calls + entry.calls)
    return spent


def _work_ns(side: ProfileSide) -> float:
    """What the device did in a step; on a CPU the step."""
    listed = float(sum(entry.self_ns for entry in side.top))
    return max(listed, side.step_ns * (side.device_busy_fraction or 1.0))


def _families(kernels: Iterable[KernelChange]) -> tuple[FamilyChange, ...]:
    by_family: dict[Family, list[KernelChange]] = {}
    for each in kernels:
        by_family.setdefault(each.kernel.family, []).append(each)
    changes = (FamilyChange(*_times_ns(some), *_calls(some), family) for family, some in by_family.items())
    return tuple(sorted(changes, key=lambda change: -abs(change.delta_ns)))


def findings(change: ProfileChange) -> tuple[Finding, ...]:
    """What differs by more than noise and by more than what is not listed, the largest difference first."""
    candidates = [_attention(change), _matrix(change), _fusible(change)]
    done = {each.family for each in candidates if each} | {Family.UNKNOWN, *FUSIBLE}
    candidates += [_of_family(change, each) for each in change.families if each.family not in done]
    sure = [each for each in candidates if each and _counts(change, each)]
    return tuple(sorted(sure, key=lambda each: -abs(each.delta_ns)))


def _counts(change: ProfileChange, finding: Finding) -> bool:
    hidden = change.before_rest_ns if finding.delta_ns > 0 else change.after_rest_ns
    size = abs(finding.delta_ns)
    less, more = sorted((finding.before_ns, finding.after_ns))
    # Another kind of attention is none by chance, however little its time differs.
    ratio = 1.0 if finding.kind in _ATTENTION_CHANGES else change.threshold.ratio
    return size >= change.smallest_ns and size > hidden and more >= ratio * less


_ATTENTION_CHANGES = (
    FindingKind.LOST_FUSED_ATTENTION,
    FindingKind.GAINED_FUSED_ATTENTION,
    FindingKind.OTHER_ATTENTION,
)


_DISPATCH = 0.01
"""An operator with a smaller share of attention's time only chose the way that it runs."""


def _attention(change: ProfileChange) -> Finding | None:
    """How attention runs, where that is another way than before; None without evidence of both sides."""
    kernels = [each for each in change.kernels if each.kernel.family is Family.ATTENTION]
    ns = _times_ns(kernels)
    before = {each.kernel.variant for each in kernels if each.before_ns > _DISPATCH * ns[0]}
    after = {each.kernel.variant for each in kernels if each.after_ns > _DISPATCH * ns[1]}
    if len(before) != 1 or len(after) != 1 or before == after or None in before | after:
        return None
    (old,), (new,) = before, after
    precision = _precision(each for each in kernels if each.kernel.variant == UNFUSED)
    if new == UNFUSED:
        return Finding(FindingKind.LOST_FUSED_ATTENTION, Family.ATTENTION, *ns, before=old, after=precision)
    if old == UNFUSED:
        return Finding(FindingKind.GAINED_FUSED_ATTENTION, Family.ATTENTION, *ns, before=precision, after=new)
    return Finding(FindingKind.OTHER_ATTENTION, Family.ATTENTION, *ns, before=old, after=new)


# What ATen's own unfused attention calls besides products and softmax, on a CPU by name: it scales both
# operands and empties the rows that are masked as a whole (`_safe_softmax`).
# Source: aten/src/ATen/native/transformers/attention.cpp.
_MATH_PIECES = frozenset(f"aten::{name}" for name in ("mul", "eq", "isneginf", "all", "where"))


def _with_unfused(kernels: list[KernelChange]) -> list[KernelChange]:
    """The kernels with the pieces of unfused attention counted to it, where one side has it in one kernel.

    The pieces are what only the other side has and runs as often as that kernel: softmax, and with one the
    matrix products around it; where a name says that attention ran unfused, the rest of it too.
    """
    fused = [each for each in kernels if each.kernel.fused_attention]
    layers = _calls(fused)
    if bool(layers[0]) == bool(layers[1]):
        return kernels
    own = [
        each
        for each in kernels
        for mine, theirs in [
            (each.after_calls, each.before_calls) if layers[0] else (each.before_calls, each.after_calls)
        ]
        if mine and not theirs and mine % max(layers) == 0
    ]
    pieces = {each.name for each in own if each.kernel.softmax}
    if pieces:
        products = [each for each in own if each.kernel.family is Family.MATRIX]
        pieces |= {each.name for each in products}
        if _precision(products) == "float32":
            # In float32 what goes in is cast first; in its own dtype nothing is.
            pieces |= {each.name for each in own if each.kernel.casts}
        if any(each.kernel.variant == UNFUSED for each in own):
            pieces |= {each.name for each in own if each.name in _MATH_PIECES}
    return [
        replace(each, kernel=replace(each.kernel, family=Family.ATTENTION, variant=UNFUSED))
        if each.name in pieces
        else each
        for each in kernels
    ]


def _precision(kernels: Iterable[KernelChange]) -> str | None:
    """Of the operands; TF32 multiplies what float32 holds. None where names do not say, or say several."""
    precisions = {each.kernel.precision for each in kernels if each.kernel.precision}
    precisions = {"float32" if each == "TF32" else each for each in precisions}
    return precisions.pop() if len(precisions) == 1 else None


def _matrix(change: ProfileChange) -> Finding | None:
    """Matrix products that run elsewhere, or in another precision, than before."""
    kernels = [each for each in change.kernels if each.kernel.family is Family.MATRIX]
    known = [each for each in kernels if each.kernel.tensor_cores is not None]
    on, off = (
        _times_ns(each for each in known if each.kernel.tensor_cores is there) for there in (True, False)
    )
    whole, least, new = _times_ns(kernels), change.smallest_ns, _main_precision(known, after=True)
    if on[0] - on[1] >= least and off[1] - off[0] >= least and on[1] <= on[0] / 2:
        return Finding(FindingKind.LEFT_TENSOR_CORES, Family.MATRIX, *whole, after=new)
    if on[1] - on[0] >= least and off[0] - off[1] >= least and off[1] <= off[0] / 2:
        return Finding(FindingKind.REACHED_TENSOR_CORES, Family.MATRIX, *whole, after=new)
    before, after = (_main_precision(kernels, after=side) for side in (False, True))
    if before and after and before != after:
        return Finding(FindingKind.OTHER_PRECISION, Family.MATRIX, *whole, before, after)
    return None


def _main_precision(kernels: Iterable[KernelChange], *, after: bool) -> str | None:
    """In which most of the time is spent; None where none has four fifths of it."""
    spent: dict[str | None, float] = {}
    for each in kernels:
        ns = each.after_ns if after else each.before_ns
        spent[each.kernel.precision] = spent.get(each.kernel.precision, 0.0) + ns
    total = sum(spent.values())
    return next((name for name, ns in spent.items() if total and ns >= 0.8 * total), None)


def _fusible(change: ProfileChange) -> Finding | None:
    """The families that fuse with each other, together; the one of them that makes the difference alone."""
    families = [each for each in change.families if each.family in FUSIBLE]
    delta_ns = sum(each.delta_ns for each in families)
    against = sum(abs(each.delta_ns) for each in families if each.delta_ns * delta_ns < 0)
    for each in families:
        if each.delta_ns * delta_ns > 0 and abs(each.delta_ns) >= 0.8 * abs(delta_ns):
            if against <= 0.1 * abs(delta_ns):
                return _of_family(change, each)
            break
    if not families:
        return None
    before, after = (plural(round(calls), "kernel") for calls in _calls(families))
    return Finding(FindingKind.FUSIBLE, families[0].family, *_times_ns(families), before, after)


def _of_family(change: ProfileChange, family: FamilyChange) -> Finding:
    """The one kernel that makes the difference, where both sides have it and it runs as often; else the
    family.
    """
    for each in change.kernels:
        same = each.before_ns and each.after_ns and each.before_calls == each.after_calls
        if each.kernel.family is family.family and same and each.delta_ns * family.delta_ns > 0:
            if abs(each.delta_ns) >= 0.8 * abs(family.delta_ns):
                kind, name = FindingKind.KERNEL, each.name
                times = each.before_ns, each.after_ns
                return Finding(kind, family.family, *times, name, name, each.after_calls)
            break
    kind = FindingKind.COPIES if family.family is Family.COPY else FindingKind.FAMILY
    more = family.after_calls - family.before_calls
    copied = change.copied_bytes if kind is FindingKind.COPIES else None
    return Finding(kind, family.family, family.before_ns, family.after_ns, calls=more, bytes=copied)
