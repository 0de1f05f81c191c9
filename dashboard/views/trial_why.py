"""Why a trial's step takes its time, and where the compiler's own log of it lies."""

from __future__ import annotations

from statistics import median

import pandas as pd
import streamlit as st

from dashboard.foreign_text import escaped
from dashboard.views import elements
from db import units
from db.diagnosis import Profile, Trace
from db.metrics.why import profile_rows, why, work_text
from db.records import Trial


def explanation(trial: Trial) -> None:
    """Profile and trace, where there are any."""
    if trial.profile is not None:
        _profile(trial, trial.profile)
    if trial.trace is not None:
        _trace(trial, trial.trace)


def _profile(trial: Trial, profile: Profile) -> None:
    with st.container(border=True):
        elements.finding(
            why(profile) or "What a step consists of",
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
        for figure, eager, own in profile_rows(profile)
    ]
    elements.table(
        pd.DataFrame(rows)[list(columns)],
        columns,
        key="trial-profile",
        alt="Launches, operators and host time of eager and of this strategy, per step",
    )
    work = work_text(profile, median(trial.latency_samples_ns) if trial.latency_samples_ns else None)
    if work:
        elements.note(f"Work of an eager step: {work}. Rates are at the measured latency.")


def _longest(trial: Trial, profile: Profile) -> None:
    total = profile.own.step_ns or 1
    rows = [
        {
            "name": entry.name,
            "calls": units.significant(entry.calls),
            "time": units.duration(entry.self_ns),
            "share": f"{100 * entry.self_ns / total:.0f} %",
        }
        for entry in profile.own.top
    ]
    if not rows:
        elements.note("No kernel and no operator was seen.")
        return
    elements.table(
        pd.DataFrame(rows),
        {
            "name": st.column_config.TextColumn("Kernel or operator", width="medium"),
            "calls": st.column_config.TextColumn("Calls", alignment="right", width="small"),
            "time": st.column_config.TextColumn("Own time", alignment="right", width="small"),
            "share": st.column_config.TextColumn("Of the step", alignment="right", width="small"),
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
