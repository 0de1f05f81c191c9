"""Trials as the parts of a report: the list of them, or all that one told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

from dashboard.api.representation import rows_of
from dashboard.charts.style import PreparedChart
from dashboard.links.links import Link
from dashboard.pages.cold_start import charts as cold_start
from dashboard.pages.trial import charts, content
from dashboard.pages.trial.content import FIGURES, MOST_ROWS, figures, only_a_summary, trial_rows
from dashboard.read.data import filters_of, read_choices_on, read_newest_trials, read_trial
from dashboard.read.snapshots import Snapshot
from dashboard.render import theme
from dashboard.reports.content import (
    Column,
    Figures,
    Frozen,
    Lines,
    ReportError,
    Section,
    Table,
    newest_builds,
    nothing_fits,
)
from dashboard.reports.tables import charted, listed, table_of
from db.cause.sentences import explained
from db.errors import NotFoundError
from db.queries.cold_start import phases_of
from db.records.ids import build_identity
from db.records.trial import CompilerEvent, Failure, Trial
from db.wording import units
from db.wording.trials import (
    longest_rows,
    other_figures,
    profile_rows,
    sample_count_text,
    step_times,
    stream_texts,
)

# What one process told beside its figures, as the parts of a report.

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
        *(_pairs("Memory", content.memory_pairs(record.memory)) if record.memory else ()),
        *(_pairs("Numerics", content.numerics_pairs(record.numerics)) if record.numerics else ()),
        *_pairs(
            "Device and host while sampling",
            content.state_pairs(record),
            note="Clocks, temperature and power: minimum, median, maximum." if record.device_state else "",
        ),
        *_pairs("Where and what was measured", content.environment_pairs(record)),
        *listed("Run it again", content.commands(record)),
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
    found = content.timing(record)
    if found is None:
        return ()
    titles = content.side_titles(content.TIME_TITLES, record)
    numbers = set(titles) - {"name"}
    parts: tuple[Section, ...] = (
        table_of(found.times, titles, title=found.finding, numeric=numbers, note=found.note),
    )
    if len(found.facts):
        titles = content.side_titles(content.FACT_TITLES, record)
        parts += (table_of(found.facts, titles, title="How the times were taken", numeric=numbers),)
    return parts


def _samples(record: Trial) -> tuple[Section, ...]:
    if not record.latency_samples_ns:
        return ()
    name, own, control = record.strategy.name, record.latency_samples_ns, record.control_latency_samples_ns
    strategies = tuple(theme.ordered([name, *([charts.CONTROL] if control else [])]))
    over_time = {"main": charts.frame(own, control, name), "medians": charts.medians(own, control, name)}
    spread = {"main": charts.distribution(own, control, name)}
    return (
        *charted(
            PreparedChart("Every sample as measured", charts.over_time(strategies), over_time),
            caption="Eager and compiled in alternation. Dashed: medians.",
            alt="Latency of every sample in the order measured",
        ),
        *charted(
            PreparedChart("How the samples spread", charts.histogram(strategies), spread),
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
        sides = tuple(theme.ordered([name, *([charts.CONTROL] if control else [])]))
        rows = charts.first_iteration_frame(facts.first_batches_ns, control, facts.compiles or [], name)
        parts += charted(
            PreparedChart("The first iteration", charts.by_batch(sides), {"main": rows}),
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
    times = step_times(record)
    rows = pd.DataFrame(profile_rows(profile, times), columns=["figure", "eager", "own"])
    columns = {"figure": "Figure", "eager": "Eager"}
    if profile.control is not None:
        columns["own"] = record.strategy.name
    title = explained(record) or "What a step consists of"
    parts: tuple[Section, ...] = (table_of(rows, columns, title=title, numeric=("eager", "own")),)
    longest = pd.DataFrame(longest_rows(profile, times), columns=["name", "calls", "time", "share"])
    if len(longest):
        titles = {"name": "Kernel or operator", "calls": "Calls", "time": "Self time", "share": "% of step"}
        parts += (table_of(longest, titles, title="What takes longest", numeric=("calls", "time", "share")),)
    return parts


def _cold_start(record: Trial) -> tuple[Section, ...]:
    start = record.cold_start
    if start is None:
        return ()
    steady = content.until_steady(start) if start.until_steady_ns is not None else ""
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
        *_pairs("Compiler", content.compiler_pairs(facts)),
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


_LIST = {
    "workload": "Workload",
    "strategy": "Strategy",
    "status": "Status",
    "why": "Failure",
    **FIGURES,
    "bound": "Timing",
    "build": "Build",
    "started": "Started",
}


def frozen(snapshot: Snapshot, link: Link) -> Frozen:
    """One trial where `link` names one, else the newest `MOST_ROWS` that its filters let through."""
    if link.trial:
        try:
            return _one(read_trial(snapshot, link.trial), link)
        except NotFoundError as error:
            raise ReportError(error.message, error.next_step) from error
    frame, total = read_newest_trials(snapshot, filters_of(link), MOST_ROWS)
    if frame.empty:
        raise nothing_fits()
    table = trial_rows(frame, read_choices_on(snapshot, link.machine).builds)
    table = table.assign(started=[units.moment(at) for at in table["started"]])
    more = len(frame) < total
    title = f"The newest {len(frame)} of {units.plural(total, 'trial')}" if more else "Trials, newest first"
    parts = (table_of(table, _LIST, title=title, numeric=FIGURES),)
    return Frozen(parts, link, newest_builds(frame, "started_at"), {"trials": rows_of(frame.iloc[::-1])})


def _one(record: Trial, link: Link) -> Frozen:
    return Frozen(
        (_figures(record), _taken(record), *trial_parts(record)),
        link,
        (build_identity(record.build),),
        {"trial": record.model_dump(mode="json")},
    )


def _figures(record: Trial) -> Section:
    suspect = record.device_state is not None and record.device_state.suspect
    status = f"{record.status.value}, suspect" if suspect else record.status.value
    return Figures(
        figures=(
            ("Case", f"{record.workload.name} with {record.strategy.name}"),
            ("Status", status),
            *((title, text) for title, text, _ in figures(record)),
        )
    )


def _taken(record: Trial) -> Section:
    """When it ran, and how its samples were taken."""
    took = record.ended_at - record.started_at if record.ended_at else None
    lasted = f", took {units.duration(took.total_seconds() * 1e9)}" if took else ""
    lines = [f"In run {record.run_id}, started {units.moment(record.started_at)}{lasted}."]
    if record.sampling is not None:
        text = sample_count_text(record.sampling)
        lines.append(f"{text[0].upper()}{text[1:]}.")
    if not record.latency_samples_ns and record.summary is not None:
        lines.append(only_a_summary(record.summary))
    return Lines(lines=tuple(lines))
