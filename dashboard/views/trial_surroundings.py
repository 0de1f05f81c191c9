"""Where and how one trial was measured, and how to measure it again."""

from __future__ import annotations

import streamlit as st

from dashboard.prepared import trial as prepared
from dashboard.views import elements
from dashboard.views.trial_facts import NOT_MEASURED
from db import units
from db.records import SourceKind, Trial


def states(trial: Trial) -> None:
    """Clocks, temperatures, throttling and load while it was sampled, and why it is suspect."""
    device, host = trial.device_state, trial.host_state
    with elements.part("Device and host while sampling"):
        if device is None and host is None:
            elements.note(NOT_MEASURED)
            return
        elements.pairs(prepared.state_pairs(trial))
        if device is not None:
            elements.note("Clocks, temperature and power: minimum, median, maximum.")


def environment(trial: Trial) -> None:
    """Machine, every part of the build, and what makes the workload what it is."""
    with elements.part("Environment"):
        pairs = prepared.environment_pairs(trial)
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
            st.code(prepared.run_command(trial), language="bash", wrap_lines=True)
            elements.note("Measures the same case on this machine with the torch that is installed now.")
