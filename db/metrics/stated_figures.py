"""What a source states of a trial instead of samples, and the times of a GPU, as names and texts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from db.diagnosis import Gate, TimingSide
from db.metrics.device_times import bound_of
from db.records import Summary, TimingMethod, Trial, timing_method_of
from db.units import MISSING, count, duration, percent, plural, rate, ratio, words
from db.wording.marks import UNGATED_MEANS, bound_word
from db.wording.metrics import METRICS


def main_figures(summary: Summary) -> list[tuple[str, str]]:
    """Latency with how many measurements it is made of, eager's, and the speedup; those that are stated."""
    latency, eager = summary.latency_ns, summary.control_latency_ns
    found: list[tuple[str, str]] = []
    if latency is not None:
        found.append(("latency", f"{duration(latency)} as stated, {measurements(summary)}"))
    if eager is not None:
        found.append(("eager control", duration(eager)))
    if latency and eager is not None:
        found.append(("speedup", ratio(eager / latency)))
    return found


def other_figures(summary: Summary) -> list[tuple[str, str]]:
    """Throughput, then what has no field of its own, by the source's names and in its units."""
    known = [] if summary.throughput_per_s is None else [("throughput", rate(summary.throughput_per_s))]
    return [*known, *((name, f"{value:.10g}") for name, value in sorted(summary.metrics.items()))]


def measurements(summary: Summary) -> str:
    """Of how many measurements it was made: "n = 30", "n unknown"."""
    return "n unknown" if summary.n is None else f"n = {count(summary.n)}"


@dataclass(frozen=True, slots=True)
class TimeOfSides:
    """One of the times of a GPU, as texts: medians, eager over this side, and how many samples each has."""

    name: str
    own: str
    eager: str
    speedup: str
    samples: str


def device_times(trial: Trial) -> list[TimeOfSides]:
    """Every time that was taken of a GPU's steps; none of another trial.

    Version 1 has CUDA events without a gate, and steps of the same blocks on the host's clock.
    """
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
    wall, device = (duration(median(each)) for each in (trial.wall_pipelined_ns, trial.device_ns))
    word = bound_word(bound).capitalize()
    return f"{word}: a pipelined step takes {wall}, of which the device needs {device}"


def trial_bound(trial: Trial) -> str | None:
    """`host` or `device`: what bounds this trial, by `db.metrics.device_times.bound_of`."""
    times = (median(each) if len(each) else None for each in (trial.device_ns, trial.wall_pipelined_ns))
    return bound_of(timing_method_of(trial), *times)


def timing_facts(side: TimingSide) -> dict[str, str]:
    """How one side was timed, by name; a dash for what is not known."""
    gate = side.gate
    inside = {True: "yes", False: "no", None: MISSING}
    clock = side.sm_clock_mhz
    return {
        "Method": str(side.method),
        "Gate": f"{words(gate.kind)}, {plural(gate.steps, 'step')}" if gate else MISSING,
        "Verified samples": f"{count(gate.verified)} of {count(gate.samples)}{_share(gate)}"
        if gate
        else MISSING,
        "Retries": count(gate.retries) if gate else MISSING,
        "Launches per step": MISSING if side.launches is None else f"{side.launches:g}",
        "Synchronises inside": inside[side.synchronises],
        "Streams": count(side.streams),
        "Steps per synchronisation": count(side.pipelined_steps),
        "SM clock (MHz)": MISSING if clock is None else " · ".join(f"{value:g}" for value in clock),
        "Throttled by": ", ".join(side.throttle_reasons) or "nothing",
    }


def _share(gate: Gate) -> str:
    return f" ({percent(gate.verified / gate.samples)})" if gate.samples else ""


def device_time_figures(trial: Trial) -> list[tuple[str, str]]:
    """How a GPU's steps were timed: method, gate, each time with eager's beside it, what bounds the trial."""
    times = device_times(trial)
    if not times:
        return []
    ungated = timing_method_of(trial) is TimingMethod.UNGATED
    found = [("timing", UNGATED_MEANS if ungated else str(timing_method_of(trial)))]
    found += [(each.name.lower(), _beside_eager(each)) for each in times]
    if trial_bound(trial):
        found.append(("bound", bound_word(trial_bound(trial))))
    if trial.timing is not None:
        own = timing_facts(trial.timing.side)
        eager = timing_facts(trial.timing.control) if trial.timing.control else own
        for name in (
            "Gate",
            "Verified samples",
            "Retries",
            "Launches per step",
            "SM clock (MHz)",
            "Throttled by",
        ):
            beside = "" if eager[name] == own[name] else f" (eager {eager[name]})"
            found += [(f"  {name}", own[name] + beside)] if own[name] != MISSING else []
    return found


def _beside_eager(time: TimeOfSides) -> str:
    beside = "" if time.eager == MISSING else f" (eager {time.eager}, {time.speedup})"
    return f"{time.own}{beside}, n = {time.samples}"
