"""The times of a GPU in words: which there are, how they were taken, and what bounds a step.

What a step's operations and bytes would take at the rates that the machine reached in its canaries.

Source: Williams, Waterman, Patterson, "Roofline", CACM 52(4), 2009; the roofs are measured, not nominal.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from compilewatch.db.cause.trial_words import step_times
from compilewatch.db.columns.metrics import METRICS
from compilewatch.db.metrics.trial_times import bound_of
from compilewatch.db.records.sampling_facts import Gate, TimingSide
from compilewatch.db.records.trial import UNGATED_MEANS, TimingMethod, Trial, bound_word, timing_method_of
from compilewatch.db.units import MISSING, count, duration, percent, plural, ratio, words


@dataclass(frozen=True, slots=True)
class TimeOfSides:
    """One of the times of a GPU, as texts: medians, eager over this side, and how many samples each has."""

    name: str
    own: str
    eager: str
    speedup: str
    samples: str


def device_times(trial: Trial) -> list[TimeOfSides]:
    """Every time that was taken of a GPU's steps; none of another trial."""
    method = timing_method_of(trial)
    if method in (None, TimingMethod.HOST):
        return []
    entries = [METRICS[key] for key in ("device_time", "issue_time", "wall_sync", "wall_pipelined")]
    fields = {entry.column: entry.name for entry in entries}
    fields |= {"samples_ns": "Events without a gate", "host_samples_ns": "Host clock, synchronised"}
    return [
        _of_sides(name, getattr(trial, field), getattr(trial, f"control_{field}"))
        for field, name in fields.items()
        if len(getattr(trial, field))
    ]


def _of_sides(name: str, own: Sequence[int], eager: Sequence[int]) -> TimeOfSides:
    alike = len(own) == len(eager) or not len(eager)
    samples = count(len(own)) if alike else f"{count(len(own))} (eager {count(len(eager))})"
    if not len(eager):
        return TimeOfSides(name, duration(median(own)), MISSING, MISSING, samples)
    medians = median(own), median(eager)
    speedup = ratio(medians[1] / medians[0]) if medians[0] else MISSING
    return TimeOfSides(name, duration(medians[0]), duration(medians[1]), speedup, samples)


def timing_finding(trial: Trial) -> str:
    """What the times say: "Host-bound: a pipelined step takes 1.3 ms, the device needs 830 us of it"."""
    method, bound = timing_method_of(trial), trial_bound(trial)
    if bound is None:
        return "Ungated times of a step" if method is TimingMethod.UNGATED else ""
    wall, device = duration(median(trial.wall_pipelined_ns)), duration(_loop_device_ns(trial))
    word = bound_word(bound).capitalize()
    return f"{word}: a pipelined step takes {wall}, of which the device needs {device}"


def trial_bound(trial: Trial) -> str | None:
    """`host` or `device`: what bounds this trial, by `db.metrics.trial_times.bound_of`."""
    wall = median(trial.wall_pipelined_ns) if len(trial.wall_pipelined_ns) else None
    return bound_of(timing_method_of(trial), _loop_device_ns(trial), wall)


def _loop_device_ns(trial: Trial) -> float | None:
    """As `db.metrics.trial_times.loop_device_ns`."""
    unflushed = trial.timing.side.unflushed_ns if trial.timing else None
    return unflushed or (median(trial.device_ns) if len(trial.device_ns) else None)


def timing_facts(side: TimingSide) -> dict[str, str]:
    """How one side was timed, by name; a dash for what is not known."""
    gate = side.gate
    inside = {True: "yes", False: "no", None: MISSING}
    clock = side.sm_clock_mhz
    return {
        "Method": str(side.method),
        "Gate": f"{words(gate.kind)}, {plural(gate.steps, 'step')}" if gate else MISSING,
        "Verified samples": _verified(gate) if gate else MISSING,
        "Retries": count(gate.retries) if gate else MISSING,
        "Launches per step": MISSING if side.launches is None else f"{side.launches:g}",
        "Synchronises inside": inside[side.synchronises],
        "Streams": count(side.streams),
        "Device time without a flush": duration(side.unflushed_ns),
        "Traced steps": _traced(side),
        "Steps per synchronisation": count(side.pipelined_steps),
        "SM clock (MHz)": MISSING if clock is None else " · ".join(f"{value:g}" for value in clock),
        "Clock limited by": ", ".join(side.throttle_reasons) or "nothing",
    }


def _traced(side: TimingSide) -> str:
    """Sessions of the device's own tracing: "8 of 10 whole", and why there is no time."""
    found = side.tracing
    if found is None:
        return MISSING
    problem = f": {found.problem}" if found.problem else ""
    return f"{count(found.whole)} of {count(found.sessions)} whole{problem}"


def _verified(gate: Gate) -> str:
    share = f" ({percent(gate.verified / gate.samples)})" if gate.samples else ""
    return f"{count(gate.verified)} of {count(gate.samples)}{share}"


def device_time_figures(trial: Trial) -> list[tuple[str, str]]:
    """How a GPU's steps were timed: method, gate, each time with eager's beside it, what bounds the trial."""
    times = device_times(trial)
    if not times:
        return []
    ungated = timing_method_of(trial) is TimingMethod.UNGATED
    figures = [("timing", UNGATED_MEANS if ungated else str(timing_method_of(trial)))]
    figures += [(each.name.lower(), _beside_eager(each)) for each in times]
    if trial_bound(trial):
        figures.append(("bound", bound_word(trial_bound(trial))))
    if trial.timing is not None:
        own = timing_facts(trial.timing.side)
        eager = timing_facts(trial.timing.control) if trial.timing.control else own
        for name in (
            *("Gate", "Verified samples", "Retries"),
            *("Launches per step", "SM clock (MHz)", "Clock limited by"),
        ):
            beside = "" if eager[name] == own[name] else f" (eager {eager[name]})"
            figures += [(f"  {name}", own[name] + beside)] if own[name] != MISSING else []
    return figures


def _beside_eager(time: TimeOfSides) -> str:
    beside = "" if time.eager == MISSING else f" (eager {time.eager}, {time.speedup})"
    return f"{time.own}{beside}, n = {time.samples}"


@dataclass(frozen=True)
class Roofs:
    """What a device reached a second: operations of a matrix product in `dtype`, bytes read and written."""

    dtype: str
    operations_per_s: float
    bytes_per_s: float


@dataclass(frozen=True)
class Roofline:
    """An eager step, in nanoseconds: its operations and its bytes at those rates, and what it takes."""

    operations_ns: float
    bytes_ns: float
    step_ns: float

    @property
    def bound(self) -> str:
        """By what a step is bound that does nothing else."""
        return "compute-bound" if self.operations_ns >= self.bytes_ns else "memory-bound"

    @property
    def sentence(self) -> str:
        operations, moved, step = map(duration, (self.operations_ns, self.bytes_ns, self.step_ns))
        work = f"operations need {operations}, bytes at most {moved}, of its {step}"
        return f"An eager step is {self.bound}: {work}."


def roofline(trial: Trial, roofs: Roofs | None) -> Roofline | None:
    """None where work, time or roofs are not known, or the product was measured in another dtype."""
    profile, step_ns = trial.profile, step_times(trial).eager_ns
    if profile is None or roofs is None or not profile.flops or not profile.bytes or not step_ns:
        return None
    if roofs.dtype != trial.workload.dtype:
        return None
    return Roofline(
        profile.flops / roofs.operations_per_s * 1e9, profile.bytes / roofs.bytes_per_s * 1e9, step_ns
    )
