"""What one process told beside its samples: cold start, compiler, memory, numerics."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import streamlit as st

from dashboard.charts import cold_start as phases_chart
from dashboard.views import elements
from db import units
from db.queries.cold_start import phases_of
from db.records import CacheCounters, CompilerEvent, Trial

NOT_MEASURED = "Not measured."


def cold_start(trial: Trial) -> None:
    """Where the time from spawning the process to its first result went."""
    with elements.part("Cold start"):
        if trial.cold_start is None:
            elements.note(NOT_MEASURED)
            return
        found = phases_of(trial.cold_start.model_dump(mode="json"))
        total = sum(ns for _, ns in found) or 1
        rows = [
            {
                "phase": phases_chart.PHASES.get(phase, phase),
                "time": units.duration(ns),
                "share": 100 * ns / total,
            }
            for phase, ns in found
            if ns
        ]
        elements.table(
            pd.DataFrame(rows),
            {
                "phase": "Phase",
                "time": st.column_config.TextColumn("Time", alignment="right"),
                "share": st.column_config.ProgressColumn(
                    "Share", format="%.1f %%", min_value=0, max_value=100
                ),
            },
            key="trial-phases",
            alt="Phases from process start to first result with their times",
        )
        start = trial.cold_start
        if start.calls_until_steady:
            elements.note(
                f"Steady after {units.count(start.calls_until_steady)} calls and "
                f"{units.duration(start.until_steady_ns)}. Phases read from: "
                f"{start.phase_source or 'unknown'}."
            )


def compiler(trial: Trial) -> None:
    """Graphs, graph breaks, recompiles, and what the caches of the compiler answered."""
    with elements.part("Compiler"):
        facts = trial.compiler
        if facts is None:
            elements.note("Eager: nothing was compiled." if trial.strategy.kind == "eager" else NOT_MEASURED)
            return
        cache = facts.cache or CacheCounters()
        elements.pairs(
            {
                "Graphs": units.count(facts.graphs),
                "Ops captured": units.count(facts.ops_captured),
                "CUDA graph launches": units.count(facts.cudagraph_launches),
                "Recompile limit hit": _yes(facts.recompile_limit_hit),
                "FX graph cache": _answers(
                    cache.fx_graph_hits, cache.fx_graph_misses, cache.fx_graph_bypasses
                ),
                "AOTAutograd cache": _answers(
                    cache.aot_autograd_hits, cache.aot_autograd_misses, cache.aot_autograd_bypasses
                ),
            }
        )
        _events("Graph breaks", facts.graph_breaks, "trial-breaks")
        _events("Recompiles", facts.recompiles, "trial-recompiles")
        _lines("Skipped frames", facts.skipped_frames)
        _lines("CUDA graphs skipped", facts.cudagraph_skips)


def _answers(hits: int | None, misses: int | None, bypasses: int | None) -> str:
    """What a cache answered; graphs that it cannot hold are named where there are any."""
    if hits is None and misses is None:
        return units.MISSING
    refused = f", {units.count(bypasses)} it cannot hold" if bypasses else ""
    return f"{units.count(hits)} hits, {units.count(misses)} misses{refused}"


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
        found = trial.memory
        ratio = (
            found.control_peak_bytes / found.peak_bytes
            if found.control_peak_bytes and found.peak_bytes
            else None
        )
        elements.pairs(
            {
                "Peak while running": units.size(found.peak_bytes),
                "Peak of eager": units.size(found.control_peak_bytes),
                "Memory ratio (eager / this)": units.ratio(ratio),
                "Peak reserved": units.size(found.peak_reserved_bytes),
                "Peak with compilation": units.size(found.peak_with_compile_bytes),
                "Peak of the process (RSS)": units.size(found.peak_rss_bytes),
            }
        )


def numerics(trial: Trial) -> None:
    """How near the results are to those of the reference."""
    with elements.part("Numerics"):
        found = trial.numerics
        if found is None:
            elements.note(NOT_MEASURED)
            return
        elements.pairs(
            {
                "Status": units.words(found.status.value),
                "Reference": found.reference or units.MISSING,
                "Cosine similarity": exact(found.cosine_similarity),
                "Largest error": exact(found.max_abs_error),
                "RMSE of eager": exact(found.rmse_reference),
                "RMSE of compiled": exact(found.rmse_result),
                "Tolerance": exact(found.tolerance),
            }
        )


def exact(value: float | None) -> str:
    """Six significant digits."""
    return units.MISSING if value is None else f"{value:.6g}"


def _yes(value: bool | None) -> str:
    return units.MISSING if value is None else "yes" if value else "no"
