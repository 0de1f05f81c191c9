"""Where and how one trial was measured, and how to measure it again."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

import streamlit as st

from dashboard.shaping import BUILD_COMPONENTS
from dashboard.views import elements
from dashboard.views.trial_facts import NOT_MEASURED, exact
from db import units
from db.records import SourceKind, Trial


def states(trial: Trial) -> None:
    """Clocks, temperatures, throttling and load while it was sampled, and why it is suspect."""
    device, host = trial.device_state, trial.host_state
    with elements.part("Device and host while sampling"):
        if device is None and host is None:
            elements.note(NOT_MEASURED)
            return
        pairs: dict[str, str] = {}
        if device is not None:
            pairs |= {
                "SM clock (MHz)": _triple(device.sm_clock_mhz),
                "Memory clock (MHz)": _triple(device.memory_clock_mhz),
                "Temperature (°C)": _triple(device.temperature_c),
                "Power (W)": _triple(device.power_w),
                "Utilization (%)": exact(device.utilization_percent),
                "Throttled by": ", ".join(device.throttle_reasons or []) or "nothing",
                "Other processes": units.count(device.other_processes),
                "ECC": units.MISSING if device.ecc is None else "on" if device.ecc else "off",
                "New memory errors": units.count(device.ecc_errors),
            }
            if device.suspect:
                pairs["Suspect because"] = "; ".join(device.suspect_reasons or []) or "no reason given"
        if host is not None:
            pairs |= {
                "CPU stall": units.percent(host.cpu_stall_fraction),
                "CPU over wall time": exact(host.cpu_over_wall),
                "Blocks": units.count(host.blocks),
                "Blocks rejected": units.count(host.blocks_rejected),
            }
        elements.pairs(pairs)
        if device is not None:
            elements.note("Clocks, temperature and power: minimum, median, maximum.")


def environment(trial: Trial) -> None:
    """Machine, every part of the build, and what makes the workload what it is."""
    build, machine = trial.build, trial.machine
    with elements.part("Environment"):
        pairs = {
            "Machine": machine.name,
            "Device": f"{machine.device_name} ({machine.device})",
            "CPU": machine.cpu_name,
            "Threads": units.count(machine.threads),
            "Memory": units.size(machine.ram_bytes),
        }
        pairs |= {name.replace("_", " "): getattr(build, name) for name in BUILD_COMPONENTS}
        pairs |= {f"package {name}": version for name, version in sorted(build.packages.items())}
        pairs |= {f"setting {name}": str(value) for name, value in sorted(build.settings.items())}
        pairs |= {
            "Workload version": trial.workload.version,
            "Batch size": units.count(trial.workload.batch_size),
            "Shape": ", ".join(f"{name} {size}" for name, size in trial.workload.shape.items()) or None,
            "dtype": trial.workload.dtype,
            "Source": f"{trial.source.kind.value}, {trial.source.name}",
        }
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
            st.code(_command(trial), language="bash", wrap_lines=True)
            elements.note("Measures the same case on this machine with the torch that is installed now.")


def _command(trial: Trial) -> str:
    parts = [
        "compilewatch run",
        f"--workload {shlex.quote(trial.workload.name)}",
        f"--strategy {shlex.quote(trial.strategy.name)}",
    ]
    if trial.suite:
        parts.insert(1, f"--suite {shlex.quote(trial.suite)}")
    return " ".join([*parts, "--trials 1"])


def _triple(values: Sequence[float] | None) -> str:
    return units.MISSING if values is None else " · ".join(f"{value:g}" for value in values)
