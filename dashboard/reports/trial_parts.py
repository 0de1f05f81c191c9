"""What one process told beside its figures, as the parts of a report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

from dashboard import theme
from dashboard.charts import cold_start, first_iteration, samples
from dashboard.charts.prepared import PreparedChart
from dashboard.prepared import trial as told
from dashboard.reports.cases import charted, listed
from dashboard.reports.content import Column, Lines, Section, Table
from dashboard.reports.tables import table_of
from db import units
from db.metrics.stated_figures import other_figures
from db.metrics.streams import stream_texts
from db.metrics.why import profile_rows, why
from db.queries.cold_start import phases_of
from db.records import CompilerEvent, Failure, Trial

_EVENTS = {"count": "Count", "location": "File:line", "reason": "Reason"}


def trial_parts(record: Trial) -> tuple[Section, ...]:
    """Everything of `record` that is known, in the order of its page."""
    return (
        *_failure(record.failure),
        *_source(record),
        *_times(record),
        *_samples(record),
        *_stream(record),
        *_profile(record),
        *_cold_start(record),
        *_compiler(record),
        *(_pairs("Memory", told.memory_pairs(record.memory)) if record.memory else ()),
        *(_pairs("Numerics", told.numerics_pairs(record.numerics)) if record.numerics else ()),
        *_pairs(
            "Device and host while sampling",
            told.state_pairs(record),
            note="Clocks, temperature and power: minimum, median, maximum." if record.device_state else "",
        ),
        *_pairs("Where and what was measured", told.environment_pairs(record)),
        *listed("Run it again", told.commands(record)),
    )


def _pairs(title: str, pairs: Mapping[str, str | None], *, note: str = "") -> tuple[Section, ...]:
    """Names and texts, those that are known."""
    rows = tuple((name, text) for name, text in pairs.items() if text and text != units.MISSING)
    columns = (Column(title="What"), Column(title="Value"))
    return (Table(title=title, columns=columns, rows=rows, note=note),) if rows else ()


def _failure(found: Failure | None) -> tuple[Section, ...]:
    """How the process ended, and the end of what it wrote."""
    if found is None:
        return ()
    where = f" in {found.phase}" if found.phase else ""
    how = [f"Exit code {found.exit_code}."] if found.exit_code is not None else []
    how += [f"Signal {found.signal}."] if found.signal is not None else []
    parts: tuple[Section, ...] = (
        Lines(title=f"Failed: {units.words(found.kind.value)}{where}", lines=(found.message, *how)),
    )
    log = [(line,) for line in (found.log_tail or "").splitlines() if line.strip()]
    if log:
        parts += (Table(title="The end of its log", columns=(Column(title="Line"),), rows=tuple(log)),)
    return parts


def _source(record: Trial) -> tuple[Section, ...]:
    """Figures that only the source of an imported trial has."""
    stated = other_figures(record.summary) if record.summary is not None else []
    note = f"As {record.source.name} names them, in its own units."
    return _pairs("Figures of the source", dict(stated), note=note)


def _times(record: Trial) -> tuple[Section, ...]:
    """The times of a GPU on both sides, and how they were taken."""
    found = told.timing(record)
    if found is None:
        return ()
    titles = told.side_titles(told.TIME_TITLES, record)
    numbers = set(titles) - {"name"}
    parts: tuple[Section, ...] = (
        table_of(found.times, titles, title=found.finding, numeric=numbers, note=found.note),
    )
    if len(found.facts):
        titles = told.side_titles(told.FACT_TITLES, record)
        parts += (table_of(found.facts, titles, title="How the times were taken", numeric=numbers),)
    return parts


def _samples(record: Trial) -> tuple[Section, ...]:
    if not record.latency_samples_ns:
        return ()
    name, own, control = record.strategy.name, record.latency_samples_ns, record.control_latency_samples_ns
    strategies = tuple(theme.ordered([name, *([samples.CONTROL] if control else [])]))
    over_time = {"main": samples.frame(own, control, name), "medians": samples.medians(own, control, name)}
    spread = {"main": samples.distribution(own, control, name)}
    return (
        *charted(
            PreparedChart("Every sample as measured", samples.over_time(strategies), over_time),
            caption="Eager and compiled in alternation. Dashed: medians.",
            alt="Latency of every sample in the order measured",
        ),
        *charted(
            PreparedChart("How the samples spread", samples.histogram(strategies), spread),
            caption="The slowest 1 % of samples stand in the last bin.",
            alt="Distribution of the samples' latencies",
        ),
    )


def _stream(record: Trial) -> tuple[Section, ...]:
    """Padding, tokens and compilations of a workload of several batches."""
    facts = record.stream
    if facts is None:
        return ()
    parts = _pairs("Its batches", {name.capitalize(): text for name, text in stream_texts(facts)})
    if facts.first_batches_ns:
        control = facts.control_first_batches_ns
        name = record.strategy.name
        sides = tuple(theme.ordered([name, *([samples.CONTROL] if control else [])]))
        rows = first_iteration.frame(facts.first_batches_ns, control, facts.compiles or [], name)
        parts += charted(
            PreparedChart("The first iteration", first_iteration.by_batch(sides), {"main": rows}),
            caption="Every batch on the host's clock, its loading included.",
            alt="Time of every batch in the first iteration, on a logarithmic scale",
        )
    if facts.compiles:
        table = pd.DataFrame(
            [
                (each.batch, each.part, units.duration(each.took_ns), each.reason or "first compilation")
                for each in facts.compiles
            ],
            columns=["batch", "part", "took", "reason"],
        )
        titles = {"batch": "Batch", "part": "Part", "took": "Took", "reason": "Reason"}
        parts += (table_of(table, titles, title="Compilations of it", numeric=("batch", "took")),)
    return parts


def _profile(record: Trial) -> tuple[Section, ...]:
    """Why a step takes its time."""
    profile = record.profile
    if profile is None:
        return ()
    rows = pd.DataFrame(profile_rows(profile), columns=["figure", "eager", "own"])
    columns = {"figure": "Figure", "eager": "Eager"}
    if profile.control is not None:
        columns["own"] = record.strategy.name
    title = why(profile) or "What a step consists of"
    parts: tuple[Section, ...] = (table_of(rows, columns, title=title, numeric=("eager", "own")),)
    longest = pd.DataFrame(
        [
            (each.name, units.significant(each.calls), units.duration(each.self_ns))
            for each in profile.own.top
        ],
        columns=["name", "calls", "time"],
    )
    if len(longest):
        titles = {"name": "Kernel or operator", "calls": "Calls", "time": "Own time"}
        parts += (table_of(longest, titles, title="What takes longest", numeric=("calls", "time")),)
    return parts


def _cold_start(record: Trial) -> tuple[Section, ...]:
    start = record.cold_start
    if start is None:
        return ()
    steady = told.until_steady(start) if start.until_steady_ns is not None else ""
    found = [(phase, ns) for phase, ns in phases_of(start.model_dump(mode="json")) if ns]
    if not found:
        return (Lines(title="Cold start", lines=("The time of single phases is not known.", steady)),)
    total = sum(ns for _, ns in found)
    rows = pd.DataFrame(
        [
            (cold_start.PHASES.get(phase, phase), units.duration(ns), units.percent(ns / total))
            for phase, ns in found
        ],
        columns=["phase", "time", "share"],
    )
    titles = {"phase": "Phase", "time": "Time", "share": "Share"}
    return (table_of(rows, titles, title="Cold start", numeric=("time", "share"), note=steady),)


def _compiler(record: Trial) -> tuple[Section, ...]:
    facts = record.compiler
    if facts is None:
        return ()
    return (
        *_pairs("Compiler", told.compiler_pairs(facts)),
        *_events("Graph breaks", facts.graph_breaks),
        *_events("Recompiles", facts.recompiles),
        *listed("Skipped frames", facts.skipped_frames or ()),
        *listed("CUDA graphs skipped", facts.cudagraph_skips or ()),
    )


def _events(title: str, events: Sequence[CompilerEvent] | None) -> tuple[Section, ...]:
    """Nothing where they were not measured or there were none: the count of graphs says that."""
    if not events:
        return ()
    rows = pd.DataFrame(
        [(units.count(each.count), each.location or units.MISSING, each.reason) for each in events],
        columns=list(_EVENTS),
    )
    return (table_of(rows, _EVENTS, title=title, numeric=("count",)),)
