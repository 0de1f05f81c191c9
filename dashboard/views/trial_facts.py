"""What one process told beside its samples: its source's figures, cold start, compiler, memory, numerics."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import streamlit as st

from dashboard.charts import cold_start as phases_chart
from dashboard.prepared import trial as prepared
from dashboard.views import elements
from db import units
from db.metrics.stated_figures import other_figures
from db.queries.cold_start import phases_of
from db.records import CompilerEvent, Trial

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
            elements.note(prepared.until_steady(start))


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
        elements.pairs(prepared.compiler_pairs(facts))
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
        elements.pairs(prepared.memory_pairs(trial.memory))


def numerics(trial: Trial) -> None:
    """How near the results are to those of the reference."""
    with elements.part("Numerics"):
        found = trial.numerics
        if found is None:
            elements.note(NOT_MEASURED)
            return
        elements.pairs(prepared.numerics_pairs(found))
