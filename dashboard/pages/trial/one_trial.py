"""The parts of one trial: its samples, why its step takes its time, and what its process recorded beside."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict

import pandas as pd

from compilewatch.dashboard.charts.cold_start import PHASES
from compilewatch.dashboard.charts.style import ChartContent
from compilewatch.dashboard.pages.trial import charts, facts
from compilewatch.dashboard.parts import parts
from compilewatch.dashboard.parts.parts import (
    Chart,
    Group,
    Lines,
    Pairs,
    Part,
    Table,
    TableColumn,
    notes,
    titled,
)
from compilewatch.dashboard.text import theme
from compilewatch.dashboard.verdicts.evidence import issue_parts
from compilewatch.db import units
from compilewatch.db.cause.after_ready import after_ready_rows, after_ready_sentence
from compilewatch.db.cause.caches import lookup_rows, lookups_sentence
from compilewatch.db.cause.memory_change import HeldChange, named, on_both_sides
from compilewatch.db.cause.notes import rank_rows, ranks_sentence, trial_notes
from compilewatch.db.cause.sentences import explained, longest_rows, profile_rows, work_text
from compilewatch.db.cause.trial_words import (
    device_times,
    loop_text,
    other_figures,
    sample_count_text,
    step_times,
    stream_texts,
    timing_facts,
    timing_finding,
)
from compilewatch.db.columns.metrics import METRICS
from compilewatch.db.metrics.groups import row_dicts
from compilewatch.db.queries.case_parts import phases_of
from compilewatch.db.records.evidence import RankFacts
from compilewatch.db.records.sampling_facts import Profile, StreamFacts
from compilewatch.db.records.strategies import EAGER
from compilewatch.db.records.trial import UNGATED_MEANS, CompilerEvent, SourceKind, StrategyKind, Trial

_NOT_MEASURED = "Not measured."
_EVENT = {
    "count": TableColumn("Count", kind="number"),
    "location": TableColumn("File:line"),
    "reason": TableColumn("Reason", wide=True),
}
_COMPILE = {
    "batch": TableColumn("Batch", kind="number"),
    "part": TableColumn("Part"),
    **parts.quantities("ns", {"took": "Took"}),
    "reason": TableColumn("Reason", wide=True),
}
_LOOKUP = {
    **parts.texts({"cache": "Cache", "answer": "Answer", "what": "For"}),
    "tensors": TableColumn("Inputs", wide=True),
    **parts.quantities("ns", {"saved": "Saved", "lost": "Lost"}),
    "reason": TableColumn("Reason", wide=True),
    **parts.hidden(parts.texts({"key": "Key"})),
}
_RANK = {
    "rank": TableColumn("Rank", kind="number"),
    "compilations": TableColumn("Compilations", kind="number"),
    **parts.quantities("ns", {"compile": "Compile time", "step": "Step", "cpu": "CPU time of a step"}),
    "steps": TableColumn("Steps", kind="number"),
}
_AFTER_READY = {
    **parts.quantities("ns", {"after": "After ready", "cost": "Took"}),
    **parts.texts({"kind": "What", "function": "Function", "request": "Request"}),
    "inputs": TableColumn("Inputs", wide=True),
    "reason": TableColumn("Reason", wide=True),
}
_PHASE = {
    "phase": TableColumn("Phase"),
    **parts.quantities("ns", {"time": "Time"}),
    "share": TableColumn("Share", kind="share", form="%.1f %%"),
}
_LONGEST_ROW = ("name", "calls", "time", "share")
"""What each row of `longest_rows` holds, in its order."""
_LONGEST = {
    # A kernel's name is longer than a phone is wide.
    **parts.numbers({"time": "Self time", "share": "% of step", "calls": "Calls"}),
    "name": TableColumn("Kernel or operator"),
}


def trial_parts(trial: Trial, ranks: Sequence[RankFacts] = ()) -> tuple[Part, ...]:
    """All that is known of `trial` below its figures."""
    clocks = "Clocks, temperature and power: minimum, median, maximum." if trial.device_state else ""
    beside = (
        (
            *_source(trial),
            _cold_start(trial),
            _measured("Numerics", facts.numerics_pairs(trial.numerics) if trial.numerics else None),
        ),
        (
            _compiler(trial),
            _measured("Memory", facts.memory_pairs(trial.memory) if trial.memory else None),
            *_held(trial),
            _measured("Device and host while sampling", facts.state_pairs(trial) or None, note=clocks),
        ),
    )
    return (
        *parts.listed("Good to know", trial_notes(trial)),
        *_times(trial),
        *_samples(trial),
        *_ranks(ranks),
        *_after_ready(trial),
        *_lookups(trial),
        *_stream(trial),
        *_profile(trial),
        *_trace(trial),
        Group(beside),
        Pairs("Where and what was measured", facts.environment_pairs(trial), halved=True),
        titled("Run it again", *_commands(trial)),
        *issue_parts(trial.trial_id),
    )


def _times(trial: Trial) -> tuple[Part, ...]:
    """The times of a GPU on both sides, and how they were taken; nothing of a CPU."""
    times = device_times(trial)
    if not times:
        return ()
    note = UNGATED_MEANS
    if trial.timing is not None:
        headline = METRICS[trial.timing.headline.value].word
        flush = trial.timing.flush_l2
        flushed = "" if flush is None else f", L2 cache {'' if flush else 'not '}flushed before each sample"
        note = f"Medians. Latency is the {headline}{flushed}."
    columns = {"own": trial.strategy.name, "eager": "Eager", "speedup": "Speedup", "samples": "Samples (n)"}
    tables = (
        parts.table(
            "trial-times",
            "Times of a step on both sides",
            pd.DataFrame([asdict(each) for each in times]),
            _sides({"name": "Time", **columns}, trial),
            note=note,
        ),
        parts.table(
            "trial-timing",
            "How the times were taken",
            pd.DataFrame(_timing_facts(trial)),
            _sides({"name": "Taken", "own": trial.strategy.name, "eager": "Eager"}, trial),
        ),
    )
    return (Group(tuple(filter(None, tables)), timing_finding(trial) or "How a step was timed"),)


def _timing_facts(trial: Trial) -> list[dict[str, str]]:
    """Rows that say something of a side."""
    if trial.timing is None:
        return []
    own, eager = trial.timing.side, trial.timing.control
    texts = timing_facts(own), timing_facts(eager) if eager else {}
    rows = [
        {"name": name, "own": text, "eager": texts[1].get(name, units.MISSING)}
        for name, text in texts[0].items()
    ]
    return [row for row in rows if (row["own"], row["eager"]) != (units.MISSING, units.MISSING)]


def _sides(titles: Mapping[str, str], trial: Trial) -> dict[str, TableColumn]:
    """Columns of numbers beside their name, without one of eager beside eager."""
    alone = ("eager", "speedup") if trial.strategy.kind is StrategyKind.EAGER else ()
    columns = parts.numbers({name: title for name, title in titles.items() if name not in alone})
    return columns | {"name": TableColumn(titles["name"], pinned=True)}


def _samples(trial: Trial) -> tuple[Part, ...]:
    if not trial.latency_samples_ns:
        return notes([facts.only_a_summary(trial.summary)] if trial.summary is not None else [])
    name, own, control = trial.strategy.name, trial.latency_samples_ns, trial.control_latency_samples_ns
    strategies = tuple(theme.ordered([name, *([EAGER.name] if control else [])]))
    medians = charts.medians(own, control, name)
    texts = ", ".join(f"{row['strategy']} {units.duration(row['ms'] * 1e6)}" for row in row_dicts(medians))
    over_time = ChartContent(
        f"Median of {units.plural(len(own), 'sample')}: {texts}",
        charts.over_time(strategies),
        {"main": charts.frame(own, control, name), "medians": medians},
        [f"{units.capitalized(sample_count_text(trial.sampling))}."] if trial.sampling is not None else [],
    )
    spread = ChartContent(
        "How the samples spread",
        charts.histogram(strategies),
        {"main": charts.distribution(own, control, name)},
    )
    drawn = (
        Chart(
            "trial-samples",
            "Latency of every sample in the order measured",
            over_time,
            "Every sample as measured, eager and compiled in alternation. Dashed: medians.",
        ),
        Chart(
            "trial-distribution",
            "Distribution of the samples' latencies",
            spread,
            "The slowest 1 % of samples stand in the last bin.",
        ),
    )
    return (Group(tuple((chart,) for chart in drawn)),)


def _stream(trial: Trial) -> tuple[Part, ...]:
    """Padding, tokens and compilations; nothing for a workload of one batch."""
    stream = trial.stream
    if stream is None:
        return ()
    pairs = {name.capitalize(): text for name, text in stream_texts(stream)}
    rows = [
        {
            "batch": each.batch,
            "part": each.part,
            "took": each.took_ns,
            "reason": each.reason or "first compilation",
        }
        for each in stream.compiles or ()
    ]
    return (
        Group(((_first_iteration(stream, trial.strategy.name),), (Pairs("Its batches", pairs),))),
        *parts.table(
            "trial-compiles",
            "Compilations of the first iteration with their batch, time and reason",
            pd.DataFrame(rows),
            _COMPILE,
            title="Compilations of the first iteration",
        ),
    )


def _ranks(ranks: Sequence[RankFacts]) -> tuple[Part, ...]:
    """Which process the others wait for; nothing for one process."""
    sentence = ranks_sentence(ranks)
    if sentence is None:
        return ()
    return parts.table(
        "trial-ranks",
        "Compilations, steps and times of each rank",
        pd.DataFrame(rank_rows(ranks)),
        _RANK,
        title="Ranks",
        note=sentence,
    )


def _after_ready(trial: Trial) -> tuple[Part, ...]:
    """What a job compiled while requests waited; nothing of a process that never said it was ready."""
    facts = trial.compiler.after_ready if trial.compiler else None
    if facts is None:
        return ()
    sentence = after_ready_sentence(facts)
    if not facts.compiles:
        return (titled("After ready", Lines((sentence,))),)
    return parts.table(
        "trial-after-ready",
        "Compilations after ready with time, function, inputs and reason",
        pd.DataFrame(after_ready_rows(facts)),
        _AFTER_READY,
        title="After ready",
        note=sentence,
    )


def _lookups(trial: Trial) -> tuple[Part, ...]:
    """What a job asked the compiler's caches; nothing where none was asked."""
    keys = trial.compiler.cache_keys if trial.compiler else None
    if keys is None:
        return ()
    rows = pd.DataFrame(lookup_rows(keys))
    return parts.table(
        "trial-lookups",
        "Lookups in the compiler's caches with answer, seconds and key",
        rows,
        parts.informative(_LOOKUP, rows),
        title="Lookups in caches",
        note=lookups_sentence(keys),
    )


def _first_iteration(stream: StreamFacts, strategy: str) -> Chart:
    own, control = stream.first_batches_ns, stream.control_first_batches_ns
    sides = tuple(theme.ordered([strategy, *([EAGER.name] if control else [])]))
    finding = _compiled_at(stream)
    chart = ChartContent(finding, notes=["The time of single batches was not measured."])
    if own:
        rows = charts.first_iteration_frame(own, control, stream.compiles or [], strategy)
        chart = ChartContent(finding, charts.by_batch(sides), {"main": rows})
    return Chart(
        "trial-first-iteration",
        "Time of every batch in the first iteration, on a logarithmic scale",
        chart,
        "Every batch of the first iteration on the host's clock, its loading included. One iteration is all "
        "batches; the latencies of this page are those of whole iterations.",
    )


def _compiled_at(stream: StreamFacts) -> str:
    if stream.compiles is None:
        return f"{units.plural(stream.batches, 'batch')} per iteration"
    at = sorted({each.batch for each in stream.compiles})
    if not at:
        return "Nothing was compiled in the first iteration"
    shown = [units.count(number) for number in at[:6]] + (["later ones"] if len(at) > 6 else [])
    places = " and ".join(filter(None, [", ".join(shown[:-1]), shown[-1]]))
    return f"Compiled at batch {places}, of {units.count(stream.batches)}"


def _profile(trial: Trial) -> tuple[Part, ...]:
    """Why a step takes its time."""
    profile = trial.profile
    if profile is None:
        return ()
    times = step_times(trial)
    longest = pd.DataFrame(longest_rows(profile, times), columns=list(_LONGEST_ROW))
    alt = f"The kernels or operators of {trial.strategy.name} that take longest"
    return (
        Group(
            (
                (_profile_figures(trial, profile),),
                parts.table("trial-longest", alt, longest, _LONGEST)
                or notes(["The profile holds no kernel and no operator."]),
            ),
            explained(trial) or "What a step consists of",
        ),
    )


def _profile_figures(trial: Trial, profile: Profile) -> Table:
    times = step_times(trial)
    rows = [(units.capitalized(row[0]), *row[1:]) for row in profile_rows(profile, times)]
    columns = {"figure": TableColumn("Figure"), **parts.numbers({"eager": "Eager"})}
    if profile.control is not None:
        columns |= parts.numbers({"own": trial.strategy.name})
    note = (
        f"From {units.plural(profile.steps, 'warm step')} under torch.profiler, in a process of its own "
        "after the timed one. Each figure is per step."
    )
    work = work_text(profile, times)
    if work:
        note += f" Work of an eager step: {work}. Rates are at eager's time."
    return Table(
        "trial-profile",
        "Launches, operators and host time of eager and of this strategy, per step",
        pd.DataFrame(rows, columns=["figure", "eager", "own"]),
        columns,
        note=note,
    )


def _held(trial: Trial) -> tuple[Part, ...]:
    """The tensors that both sides save for backward, and a GPU's largest blocks at the peak."""
    memory = trial.memory
    if memory is None:
        return ()
    saved, eager = memory.saved, memory.control_saved
    held = on_both_sides(eager.largest if eager else (), saved.largest if saved else ())
    blocks = on_both_sides((), memory.peak_blocks or ())
    sides = {"own": trial.strategy.name, **({"eager": "Eager"} if eager else {})}
    return (
        *_held_table("trial-saved", "Saved for backward, by size and place", held, sides),
        *_held_table("trial-blocks", "Largest blocks at the peak", blocks, {"own": trial.strategy.name}),
    )


def _held_table(
    key: str, title: str, held: Sequence[HeldChange], sides: Mapping[str, str]
) -> tuple[Table, ...]:
    rows = [
        {
            "what": named(each.tensor, each.place, each.after or each.before),
            "own": each.after_bytes,
            "eager": each.before_bytes,
        }
        for each in held
    ]
    columns = {"what": TableColumn("What"), **parts.quantities("bytes", sides)}
    return parts.table(key, title, pd.DataFrame(rows), columns, title=title)


def _trace(trial: Trial) -> tuple[Part, ...]:
    """Paths only: what lies on a machine's disk is not served by this one."""
    trace = trial.trace
    if trace is None:
        return ()
    place = (
        f"On {trial.machine.name}, below its data directory, {units.size(trace.size_bytes)}. "
        "compilewatch show prints the whole path there."
    )
    missing = "" if trace.report else "Without a report: tlparse was not installed where it was written."
    path = Lines((trace.report or trace.directory,), code=True)
    return (titled("The compiler's own log", *notes([place]), path, *notes([missing])),)


def _source(trial: Trial) -> tuple[Part, ...]:
    """Figures that only the source of an imported trial has."""
    if trial.summary is None:
        return ()
    stated, loop = other_figures(trial.summary), loop_text(trial.summary)
    note = f"As {trial.source.name} names them, in its own units."
    spent = (Lines((f"{loop}.",), "Where the loop spent its time"),) if loop else ()
    return (*spent, Pairs("Figures of the source", dict(stated), note)) if stated else ()


def _cold_start(trial: Trial) -> Part:
    """Where the time from spawning the process to its first result went."""
    title, start = "Cold start", trial.cold_start
    if start is None:
        return Lines((_NOT_MEASURED,), title)
    steady = facts.until_steady(start) if start.until_steady_ns is not None else ""
    phases = [(phase, ns) for phase, ns in phases_of(start.model_dump(mode="json")) if ns]
    if not phases:
        return Lines(tuple(filter(None, ("The time of single phases is not known.", steady))), title)
    total = sum(ns for _, ns in phases)
    rows = [
        {"phase": PHASES.get(phase, phase), "time": ns, "share": 100 * ns / total} for phase, ns in phases
    ]
    alt = "Phases from process start to first result with their times"
    return titled(title, Table("trial-phases", alt, pd.DataFrame(rows), _PHASE, note=steady))


def _compiler(trial: Trial) -> Part:
    """Graphs, graph breaks, recompiles, and what the caches of the compiler answered."""
    compiler = trial.compiler
    if compiler is None:
        eager = trial.strategy.kind is StrategyKind.EAGER
        return Lines(("Eager: nothing was compiled." if eager else _NOT_MEASURED,), "Compiler")
    return titled(
        "Compiler",
        Pairs("", facts.compiler_pairs(trial, compiler)),
        *_events("Graph breaks", compiler.graph_breaks, "trial-breaks"),
        *parts.listed("What helps against breaks", compiler.break_hints or ()),
        *_events("Recompiles", compiler.recompiles, "trial-recompiles"),
        *parts.listed("Skipped frames", compiler.skipped_frames or ()),
        *parts.listed("Warnings", compiler.warnings or ()),
    )


def _events(title: str, events: Sequence[CompilerEvent] | None, key: str) -> tuple[Part, ...]:
    if not events:
        return notes([f"{title}: {'not measured' if events is None else 'none'}."])
    rows = [
        {"count": each.count, "location": each.location or units.MISSING, "reason": each.reason}
        for each in events
    ]
    total = units.count(sum(each.count for each in events))
    alt = f"{title} with file, line and reason"
    return parts.table(key, alt, pd.DataFrame(rows), _EVENT, title=f"{title} ({total})")


def _measured(title: str, pairs: Mapping[str, str | None] | None, *, note: str = "") -> Part:
    return Lines((_NOT_MEASURED,), title) if pairs is None else Pairs(title, pairs, note)


def _commands(trial: Trial) -> tuple[Part, ...]:
    """The commands that show this trial, repeat it, and measure its case anew."""
    shown: tuple[Part, ...] = (Lines((f"compilewatch show {trial.trial_id}",), code=True),)
    if trial.source.kind is not SourceKind.MEASURED:
        return shown
    repeats = "Repeats this trial as it was measured, and says how the result compares."
    shown += (Lines((f"compilewatch reproduce {trial.trial_id}",), code=True), *notes([repeats]))
    again = facts.run_command(trial)
    if again is None:
        return shown
    anew = "Measures the same case on this machine with the torch that is installed now."
    return (*shown, Lines((again,), code=True), *notes([anew]))
