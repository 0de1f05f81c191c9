"""What a source states of a trial instead of samples, and the times of a GPU, as names and texts."""

from __future__ import annotations

from statistics import median

from db.records import Summary, TimingMethod, Trial, timing_method_of
from db.units import count, duration, rate, ratio
from db.wording.marks import UNGATED_MEANS
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


def device_time_figures(trial: Trial) -> list[tuple[str, str]]:
    """How a GPU's steps were timed, and the median of each of the four times with eager's beside it."""
    method = timing_method_of(trial)
    if method in (None, TimingMethod.HOST) or not (trial.latency_samples_ns or trial.device_ns):
        return []
    found = [("timing", UNGATED_MEANS if method is TimingMethod.UNGATED else str(method))]
    for key in ("device_time", "issue_time", "wall_sync", "wall_pipelined"):
        entry = METRICS[key]
        own, eager = (getattr(trial, f"{side}{entry.column}") for side in ("", "control_"))
        if own:
            beside = f" (eager {duration(median(eager))})" if eager else ""
            found.append((entry.word, duration(median(own)) + beside))
    return found
