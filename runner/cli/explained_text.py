"""What `compilewatch show` says of how a trial was sampled, of its memory, its profile and its trace."""

from __future__ import annotations

from pathlib import Path
from statistics import median

from db.diagnosis import Trace
from db.metrics.samples_taken import samples_taken
from db.metrics.stated_figures import main_figures, other_figures
from db.metrics.why import profile_rows, why, work_text
from db.records import Memory, Trial
from db.units import MISSING, duration, size
from runner.trace import REPORT, trace_directory

Facts = list[tuple[str, str]]


def sampling_texts(trial: Trial) -> Facts:
    """Why there are as many samples as there are."""
    return [] if trial.sampling is None else [("sampling", samples_taken(trial.sampling))]


def stated_texts(trial: Trial) -> Facts:
    """What its source states of a trial that carries no samples; other figures by the source's own names."""
    if trial.summary is None:
        return []
    stated = [] if trial.latency_samples_ns else main_figures(trial.summary)
    others = [(f"  {name}", text) for name, text in other_figures(trial.summary)]
    return [*stated, *([("figures of the source", "in its own units"), *others] if others else [])]


def memory_texts(memory: Memory) -> Facts:
    """The peaks that are known; the peak of the process where nothing closer is."""
    named = [
        ("peak memory", memory.peak_bytes),
        ("  of eager", memory.control_peak_bytes),
        ("  with compilation", memory.peak_with_compile_bytes),
        ("  reserved", memory.peak_reserved_bytes),
        ("  of the process", memory.peak_rss_bytes),
    ]
    return [(name, size(value)) for name, value in named if value is not None]


def profile_texts(trial: Trial) -> Facts:
    """The sentence first, then the figures and what takes longest."""
    profile = trial.profile
    if profile is None:
        return []
    facts: Facts = [("why", why(profile) or MISSING)]
    for name, eager, own in profile_rows(profile):
        facts.append((f"  {name}", eager if profile.control is None else f"{own} (eager {eager})"))
    work = work_text(profile, median(trial.latency_samples_ns) if trial.latency_samples_ns else None)
    facts += [("  work of eager", work)] if work else []
    for entry in profile.own.top:
        facts.append((f"  {duration(entry.self_ns)}", f"{entry.calls:g} x {entry.name}"))
    return facts


def trace_texts(trial: Trial, data_dir: Path) -> Facts:
    """Where the compiler's log and its report lie, as a path where this is the machine that has them.

    What a record says of its paths is shown as text; a path here is made of the trial's id alone.
    """
    trace = trial.trace
    if trace is None:
        return []
    here = trace_directory(data_dir, trial.trial_id)
    if not here.is_dir():
        where = f"{trace.directory} below the data directory of {trial.machine.name}"
        return [("trace", f"{where}, {size(trace.size_bytes)}")]
    facts: Facts = [("trace", f"{here}, {size(trace.size_bytes)}")]
    return [*facts, ("  report", _report(here, trace))]


def _report(here: Path, trace: Trace) -> str:
    if trace.report is None:
        return "none; with `pip install compilewatch[trace]` the next trace gets one"
    return (here / REPORT).as_uri()
