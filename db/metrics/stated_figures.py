"""What a source states of a trial instead of samples, as names and texts."""

from __future__ import annotations

from db.records import Summary
from db.units import count, duration, rate, ratio


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
