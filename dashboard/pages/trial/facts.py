"""What one process told beside its samples: its source's figures, cold start, compiler, memory, numerics."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import streamlit as st

from dashboard.pages.cold_start import charts as phases_chart
from dashboard.pages.trial import charts, content
from dashboard.pages.trial.charts import CONTROL
from dashboard.render import elements, theme
from dashboard.render.foreign_text import escaped
from db.cause.sentences import explained
from db.queries.cold_start import phases_of
from db.records.evidence import StreamFacts
from db.records.sampling import Profile, Trace
from db.records.trial import CompilerEvent, SourceKind, Trial
from db.wording import units
from db.wording.trials import (
    longest_rows,
    other_figures,
    profile_rows,
    step_times,
    stream_texts,
    work_text,
)

NOT_MEASURED = "Not measured."


def source(trial: Trial) -> None:
    """Figures that only the source of an imported trial has; nothing where it has none."""
    stated = other_figures(trial.summary) if trial.summary is not None else []
    if stated:
        with elements.part("Figures of the source"):
            elements.note(f"As {trial.source.name} names them, in its own units.")
            elements.pairs(dict(stated))


def cold_start(trial: Trial) -> None:
    """Where the time from spawning the process to its first result went."""
    with elements.part("Cold start"):
        start = trial.cold_start
        if start is None:
            elements.note(NOT_MEASURED)
            return
        found = [(phase, ns) for phase, ns in phases_of(start.model_dump(mode="json")) if ns]
        if found:
            _phases(found)
        else:
            elements.note("The time of single phases is not known.")
        if start.until_steady_ns is not None:
            elements.note(content.until_steady(start))


def _phases(found: Sequence[tuple[str, int]]) -> None:
    total = sum(ns for _, ns in found)
    rows = [
        {
            "phase": phases_chart.PHASES.get(phase, phase),
            "time": units.duration(ns),
            "share": 100 * ns / total,
        }
        for phase, ns in found
    ]
    elements.table(
        pd.DataFrame(rows),
        {
            "phase": "Phase",
            "time": st.column_config.TextColumn("Time", alignment="right"),
            "share": st.column_config.ProgressColumn("Share", format="%.1f %%", min_value=0, max_value=100),
        },
        key="trial-phases",
        alt="Phases from process start to first result with their times",
    )


def compiler(trial: Trial) -> None:
    """Graphs, graph breaks, recompiles, and what the caches of the compiler answered."""
    with elements.part("Compiler"):
        facts = trial.compiler
        if facts is None:
            elements.note("Eager: nothing was compiled." if trial.strategy.kind == "eager" else NOT_MEASURED)
            return
        elements.pairs(content.compiler_pairs(facts))
        _events("Graph breaks", facts.graph_breaks, "trial-breaks")
        _events("Recompiles", facts.recompiles, "trial-recompiles")
        _lines("Skipped frames", facts.skipped_frames)
        _lines("CUDA graphs skipped", facts.cudagraph_skips)


def _events(title: str, events: Sequence[CompilerEvent] | None, key: str) -> None:
    if events is None:
        elements.note(f"{title}: not measured.")
    elif not events:
        elements.note(f"{title}: none.")
    else:
        st.markdown(f"**{title}** ({units.count(sum(event.count for event in events))})")
        elements.table(
            pd.DataFrame(
                [
                    {"count": e.count, "location": e.location or units.MISSING, "reason": e.reason}
                    for e in events
                ]
            ),
            {
                "count": st.column_config.NumberColumn("Count", width=70),
                "location": st.column_config.TextColumn("File:line", width="medium"),
                "reason": st.column_config.TextColumn("Reason", width="large"),
            },
            key=key,
            alt=f"{title} with file, line and reason",
        )


def _lines(title: str, lines: Sequence[str] | None) -> None:
    if lines:
        st.markdown(f"**{title}**")
        st.text("\n".join(lines))


def memory(trial: Trial) -> None:
    """Peaks of the device and of the process, those of eager beside them."""
    with elements.part("Memory"):
        if trial.memory is None:
            elements.note(NOT_MEASURED)
            return
        elements.pairs(content.memory_pairs(trial.memory))


def numerics(trial: Trial) -> None:
    """How near the results are to those of the reference."""
    with elements.part("Numerics"):
        found = trial.numerics
        if found is None:
            elements.note(NOT_MEASURED)
            return
        elements.pairs(content.numerics_pairs(found))


# Where and how one trial was measured, and how to measure it again.


def states(trial: Trial) -> None:
    """Clocks, temperatures, throttling and load while it was sampled, and why it is suspect."""
    device, host = trial.device_state, trial.host_state
    with elements.part("Device and host while sampling"):
        if device is None and host is None:
            elements.note(NOT_MEASURED)
            return
        elements.pairs(content.state_pairs(trial))
        if device is not None:
            elements.note("Clocks, temperature and power: minimum, median, maximum.")


def environment(trial: Trial) -> None:
    """Machine, every part of the build, and what makes the workload what it is."""
    with elements.part("Environment"):
        pairs = content.environment_pairs(trial)
        known = [(name, text) for name, text in pairs.items() if text and text != units.MISSING]
        half = -(-len(known) // 2)
        for column, part in zip(st.columns(2), (known[:half], known[half:]), strict=True):
            with column:
                elements.pairs(dict(part))


def reproduce(trial: Trial) -> None:
    """The commands that show this trial, repeat it, and measure its case anew."""
    with elements.part("Run it again"):
        st.code(f"compilewatch show {trial.trial_id}", language="bash")
        if trial.source.kind is SourceKind.MEASURED:
            st.code(f"compilewatch reproduce {trial.trial_id}", language="bash")
            elements.note("Repeats this trial as it was measured, and says how the result compares.")
            again = content.run_command(trial)
            if again is not None:
                st.code(again, language="bash", wrap_lines=True)
                elements.note("Measures the same case on this machine with the torch that is installed now.")


# The part of a trial that only a workload of several batches has: padding, tokens, when it was compiled.


def stream(trial: Trial) -> None:
    """Nothing for a workload of one batch."""
    facts = trial.stream
    if facts is None:
        return
    with st.container(border=True):
        elements.finding(
            _finding(facts),
            "Every batch of the first iteration on the host's clock, its loading included. One iteration is "
            "all batches; the latencies of this page are those of whole iterations.",
        )
        left, right = st.columns(2)
        with left:
            _chart(facts, trial.strategy.name)
        with right:
            elements.pairs({name.capitalize(): text for name, text in stream_texts(facts)})
        _compiles(facts)


def _finding(facts: StreamFacts) -> str:
    if facts.compiles is None:
        return f"{units.plural(facts.batches, 'batch')} per iteration"
    at = sorted({each.batch for each in facts.compiles})
    if not at:
        return "Nothing was compiled in the first iteration"
    shown = [units.count(number) for number in at[:6]] + (["later ones"] if len(at) > 6 else [])
    places = " and ".join(filter(None, [", ".join(shown[:-1]), shown[-1]]))
    return f"Compiled at batch {places}, of {units.count(facts.batches)}"


def _chart(facts: StreamFacts, strategy: str) -> None:
    if not facts.first_batches_ns:
        elements.note("The time of single batches was not measured.")
        return
    sides = [strategy, *([CONTROL] if facts.control_first_batches_ns else [])]
    elements.chart(
        charts.by_batch(tuple(theme.ordered(sides))),
        {
            "main": charts.first_iteration_frame(
                facts.first_batches_ns, facts.control_first_batches_ns, facts.compiles or [], strategy
            )
        },
        key="trial-first-iteration",
        alt="Time of every batch in the first iteration, on a logarithmic scale",
    )


def _compiles(facts: StreamFacts) -> None:
    if not facts.compiles:
        return
    elements.table(
        pd.DataFrame(
            [
                {
                    "batch": each.batch,
                    "part": each.part,
                    "took": units.duration(each.took_ns),
                    "reason": each.reason or "first compilation",
                }
                for each in facts.compiles
            ]
        ),
        {
            "batch": st.column_config.NumberColumn("Batch", width=70),
            "part": st.column_config.TextColumn("Part", width=90),
            "took": st.column_config.TextColumn("Took", alignment="right", width=90),
            "reason": "Reason",
        },
        key="trial-compiles",
        alt="Compilations of the first iteration with their batch, time and reason",
    )


# Why a trial's step takes its time, and where the compiler's own log of it lies.


def explanation(trial: Trial) -> None:
    """Profile and trace, where there are any."""
    if trial.profile is not None:
        _profile(trial, trial.profile)
    if trial.trace is not None:
        _trace(trial, trial.trace)


def _profile(trial: Trial, profile: Profile) -> None:
    with st.container(border=True):
        elements.finding(
            explained(trial) or "What a step consists of",
            f"From {units.plural(profile.steps, 'warm step')} under torch.profiler, in a process of its own "
            "after the timed one. Each figure is per step.",
        )
        left, right = st.columns(2)
        with left:
            _figures(trial, profile)
        with right:
            _longest(trial, profile)


def _figures(trial: Trial, profile: Profile) -> None:
    name = trial.strategy.name
    columns = {"figure": "Figure", "eager": st.column_config.TextColumn("Eager", alignment="right")}
    if profile.control is not None:
        columns["own"] = st.column_config.TextColumn(name, alignment="right")
    rows = [
        {"figure": f"{figure[:1].upper()}{figure[1:]}", "eager": eager, "own": own}
        for figure, eager, own in profile_rows(profile, step_times(trial))
    ]
    elements.table(
        pd.DataFrame(rows)[list(columns)],
        columns,
        key="trial-profile",
        alt="Launches, operators and host time of eager and of this strategy, per step",
    )
    work = work_text(profile, step_times(trial))
    if work:
        elements.note(f"Work of an eager step: {work}. Rates are at eager's time.")


def _longest(trial: Trial, profile: Profile) -> None:
    rows = longest_rows(profile, step_times(trial))
    if not rows:
        elements.note("The profile holds no kernel and no operator.")
        return
    elements.table(
        pd.DataFrame(rows, columns=["name", "calls", "time", "share"]),
        {
            "name": st.column_config.TextColumn("Kernel or operator", width="medium"),
            "calls": st.column_config.TextColumn("Calls", alignment="right", width="small"),
            "time": st.column_config.TextColumn("Self time", alignment="right", width="small"),
            "share": st.column_config.TextColumn("% of step", alignment="right", width="small"),
        },
        key="trial-longest",
        alt=f"The kernels or operators of {escaped(trial.strategy.name)} that take longest",
    )


def _trace(trial: Trial, trace: Trace) -> None:
    """Paths only: what lies on a machine's disk is not served by this one."""
    with st.container(border=True):
        st.markdown("#### The compiler's own log")
        elements.note(
            f"On {trial.machine.name}, below its data directory, {units.size(trace.size_bytes)}. The command "
            "compilewatch show prints the whole path there."
        )
        st.code(trace.report or trace.directory, language=None, wrap_lines=True)
        if trace.report is None:
            elements.note("Without a report: tlparse was not installed where it was written.")
