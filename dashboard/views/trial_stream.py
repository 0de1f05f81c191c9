"""The part of a trial that only a workload of several batches has: padding, tokens, when it was compiled."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from dashboard import theme
from dashboard.charts import first_iteration as charts
from dashboard.charts.samples import CONTROL
from dashboard.views import elements
from db import units
from db.metrics.streams import stream_texts
from db.records import Trial
from db.streams import StreamFacts


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
        return f"{units.count(facts.batches)} batches per iteration"
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
            "main": charts.frame(
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
