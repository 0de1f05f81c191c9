"""The parts of one trial: figures, failure, phases, compiler, memory, state, environment, reproduce."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from dashboard.charts import cold_start as phases_chart
from dashboard.data import plain
from dashboard.shaping import BUILD_COMPONENTS
from dashboard.views import elements
from db import units
from db.metrics.summary import SampleSummary, summarize_samples
from db.queries.cold_start import phases_of
from db.records import CacheCounters, CompilerEvent, Failure, SourceKind, Status, StrategyKind, Trial

_NOT_MEASURED = "Not measured."


def badges(trial: Trial) -> None:
    """Status, source, suspicion and numerics, in words and colour."""
    if trial.status is Status.OK:
        st.badge("ok", icon=":material/check:", color="green")
    else:
        st.badge("failed", icon=":material/error:", color="red")
    if trial.source.kind is SourceKind.IMPORTED:
        st.badge("imported", icon=":material/download:", color="gray")
    if trial.device_state and trial.device_state.suspect:
        st.badge("suspect", icon=":material/warning:", color="orange")
    # A program that torch.export made counts no graph of Dynamo's.
    compiles = trial.strategy.kind is StrategyKind.COMPILE
    if compiles and trial.compiler and trial.compiler.graphs == 0:
        st.badge("nothing compiled", icon=":material/block:", color="orange")


def figures(trial: Trial) -> list[tuple[str, str, str]]:
    """Title, text and explanation of the trial's main figures, those that are known."""
    found: list[tuple[str, str, str]] = []
    own, control = summarize_samples(trial.samples_ns), summarize_samples(trial.control_samples_ns)
    latency = own.latency_ns if own else trial.summary.latency_ns if trial.summary else None
    eager = control.latency_ns if control else trial.summary.control_latency_ns if trial.summary else None
    if latency:
        found.append(("Latency (p50)", units.duration(latency), _spread(own)))
    if latency and eager:
        found.append(
            ("Speedup", units.ratio(eager / latency), "Median of the eager control over the compiled median.")
        )
        found.append(
            ("Eager control (p50)", units.duration(eager), "Eager samples interleaved in the same process.")
        )
    start = trial.cold_start
    if start and start.total_ns:
        found.append(("First result after", units.duration(start.total_ns), "From spawning the process."))
    if start and start.process_tree_cpu_ns:
        found.append(
            (
                "CPU time",
                units.duration(start.process_tree_cpu_ns),
                "Of the whole process tree, compile workers included.",
            )
        )
    if trial.memory and trial.memory.peak_bytes is not None:
        found.append(
            ("Peak memory", units.size(trial.memory.peak_bytes), "While running, without compilation.")
        )
    return found


def _spread(summary: SampleSummary | None) -> str:
    if summary is None:
        return "As the imported result states it."
    ends = (("p05", summary.p05_ns), ("p95", summary.p95_ns), ("p99", summary.p99_ns))
    parts = ", ".join(f"{name} {units.duration(value)}" for name, value in ends)
    return f"Median of {units.count(summary.n)} samples; {parts}."


def failure(found: Failure) -> None:
    where = f"in {found.phase}" if found.phase else ""
    how = [f"exit code {found.exit_code}"] if found.exit_code is not None else []
    how += [f"signal {found.signal}"] if found.signal is not None else []
    with st.container(border=True):
        st.markdown(f"#### :red[Failed:] {plain(found.kind.value.replace('_', ' '))} {plain(where)}")
        st.text(found.message)
        if how:
            elements.note(", ".join(how))
        if found.log_tail:
            st.code(found.log_tail, language=None, height=min(420, 60 + 20 * found.log_tail.count("\n")))


def cold_start(trial: Trial) -> None:
    with _part("Cold start"):
        if trial.cold_start is None:
            elements.note(_NOT_MEASURED)
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
    with _part("Compiler"):
        facts = trial.compiler
        if facts is None:
            elements.note("Eager: nothing was compiled." if trial.strategy.kind == "eager" else _NOT_MEASURED)
            return
        cache = facts.cache or CacheCounters()
        _pairs(
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
    with _part("Memory"):
        if trial.memory is None:
            elements.note(_NOT_MEASURED)
            return
        found = trial.memory
        ratio = (
            found.control_peak_bytes / found.peak_bytes
            if found.control_peak_bytes and found.peak_bytes
            else None
        )
        _pairs(
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
    with _part("Numerics"):
        found = trial.numerics
        if found is None:
            elements.note(_NOT_MEASURED)
            return
        _pairs(
            {
                "Status": found.status.value.replace("_", " "),
                "Reference": found.reference or units.MISSING,
                "Cosine similarity": _exact(found.cosine_similarity),
                "Largest error": _exact(found.max_abs_error),
                "RMSE of eager": _exact(found.rmse_reference),
                "RMSE of compiled": _exact(found.rmse_result),
                "Tolerance": _exact(found.tolerance),
            }
        )


def states(trial: Trial) -> None:
    device, host = trial.device_state, trial.host_state
    with _part("Device and host while sampling"):
        if device is None and host is None:
            elements.note(_NOT_MEASURED)
            return
        pairs: dict[str, str] = {}
        if device is not None:
            pairs |= {
                "SM clock (MHz)": _triple(device.sm_clock_mhz),
                "Memory clock (MHz)": _triple(device.memory_clock_mhz),
                "Temperature (°C)": _triple(device.temperature_c),
                "Power (W)": _triple(device.power_w),
                "Utilization (%)": _exact(device.utilization_percent),
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
                "CPU over wall time": _exact(host.cpu_over_wall),
                "Blocks": units.count(host.blocks),
                "Blocks rejected": units.count(host.blocks_rejected),
            }
        _pairs(pairs)
        if device is not None:
            elements.note("Clocks, temperature and power: minimum, median, maximum.")


def environment(trial: Trial) -> None:
    build, machine = trial.build, trial.machine
    with _part("Environment"):
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
                _pairs(dict(part))


def reproduce(trial: Trial) -> None:
    with _part("Run it again"):
        st.code(f"compilewatch show {trial.trial_id}", language="bash")
        if trial.source.kind is SourceKind.MEASURED:
            st.code(f"compilewatch reproduce {trial.trial_id}", language="bash")
            elements.note("Repeats this trial as it was measured, and says how the result compares.")
            st.code(_command(trial), language="bash", wrap_lines=True)
            elements.note("Measures the same case on this machine with the torch that is installed now.")


def _command(trial: Trial) -> str:
    parts = [
        "compilewatch run",
        f"--workload {_quoted(trial.workload.name)}",
        f"--strategy {_quoted(trial.strategy.name)}",
    ]
    if trial.suite:
        parts.insert(1, f"--suite {_quoted(trial.suite)}")
    return " ".join([*parts, "--trials 1"])


def _quoted(text: str) -> str:
    return shlex.quote(text)


def _part(title: str) -> DeltaGenerator:
    box = st.container(border=True)
    box.markdown(f"#### {title}")
    return box


def _pairs(pairs: Mapping[str, str | None]) -> None:
    """A compact list of names and values; both are shown as they are."""
    st.table(
        {plain(name): plain(value or units.MISSING) for name, value in pairs.items()},
        border="horizontal",
    )


def _exact(value: float | None) -> str:
    return units.MISSING if value is None else f"{value:.6g}"


def _triple(values: Sequence[float] | None) -> str:
    return units.MISSING if values is None else " · ".join(f"{value:g}" for value in values)


def _yes(value: bool | None) -> str:
    return units.MISSING if value is None else "yes" if value else "no"
