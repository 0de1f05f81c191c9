"""The facts of one trial as names and texts: figures, compiler, memory, numerics, its surroundings."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from compilewatch.dashboard.parts.parts import Figure
from compilewatch.dashboard.read.shaping import BUILD_COMPONENTS, flat
from compilewatch.db import units
from compilewatch.db.cause.compiler_change import autotuned_texts, generated_text
from compilewatch.db.cause.memory_change import saved_text
from compilewatch.db.cause.notes import cache_texts, compiled_texts, utilization_text
from compilewatch.db.cause.trial_words import (
    eager_before,
    losses_sentence,
    measurements,
    numerics_sentence,
    process_text,
    threads_text,
    throughput_figures,
)
from compilewatch.db.metrics.trial_times import SampleSummary, latencies_ns, summarize_samples
from compilewatch.db.records.identity import code_name
from compilewatch.db.records.strategies import names_code
from compilewatch.db.records.trial import (
    ColdStart,
    CompilerFacts,
    Memory,
    Numerics,
    StrategyKind,
    Summary,
    Trial,
)

_ITEMS = "Items per second at the latency."


def figures(trial: Trial) -> tuple[Figure, ...]:
    """The trial's main figures, those that are known."""
    own, control = (
        summarize_samples(trial.latency_samples_ns),
        summarize_samples(trial.control_latency_samples_ns),
    )
    latency_ns, eager_ns = latencies_ns(trial)
    start, memory = trial.cold_start, trial.memory
    speedup = eager_ns / latency_ns if latency_ns and eager_ns else None
    both = eager_ns if speedup else None
    eager = eager_before(trial)
    rates = [(name.capitalize(), text, _ITEMS) for name, text in throughput_figures(trial)]
    texts = (
        *rates,
        ("Latency (p50)", units.duration(latency_ns or None), _spread(own)),
        ("Speedup", units.ratio(speedup), "Median of the eager control over the compiled median."),
        (
            "Eager control (p50)",
            units.duration(both),
            "Eager samples interleaved in the same process." if control else _spread(None),
        ),
        ("Eager", eager[0] if eager else units.MISSING, f"{eager[1].capitalize()}." if eager else ""),
        (
            "First result after",
            units.duration(start.total_ns or None if start else None),
            "From spawning the process.",
        ),
        (
            "CPU time",
            units.duration(start.process_tree_cpu_ns or None if start else None),
            "Of the whole process tree, compile workers included.",
        ),
        (
            "Peak memory",
            units.size(memory.peak_bytes if memory else None),
            "While running, without compilation.",
        ),
    )
    # A phone would cut a rate and its items, which wrap as a name does.
    return tuple(Figure(*text, name=text in rates) for text in texts if text[1] != units.MISSING)


def _spread(summary: SampleSummary | None) -> str:
    if summary is None:
        return "As the imported result states it."
    ends = (("p05", summary.p05_ns), ("p95", summary.p95_ns), ("p99", summary.p99_ns))
    parts = ", ".join(f"{name} {units.duration(value)}" for name, value in ends)
    return f"Median of {units.plural(summary.n, 'sample')}; {parts}."


def only_a_summary(summary: Summary) -> str:
    """What there is of an imported result that has no samples."""
    return f"This result carries no samples, only a summary: {measurements(summary)}."


def until_steady(start: ColdStart) -> str:
    """When it was steady. A cost that a source states net of steady calls has none of them in it."""
    duration = units.duration(start.until_steady_ns)
    if start.calls_until_steady == 0:
        return f"Compile cost {duration}, as the source states it."
    calls = (
        "" if start.calls_until_steady is None else f"{units.plural(start.calls_until_steady, 'call')} and "
    )
    return f"Steady after {calls}{duration}. Phases read from: {start.phase_source or 'unknown'}."


def compiler_pairs(trial: Trial, facts: CompilerFacts) -> dict[str, str | None]:
    """Graphs, and what the caches of the compiler answered."""
    return {
        "Graphs": units.count(facts.graphs),
        "Ops captured": units.count(facts.ops_captured),
        **{units.capitalized(name): text for name, text in compiled_texts(facts)},
        "Generated code": generated_text(facts) or units.MISSING,
        "Already compiled": ", ".join(facts.already_compiled or ()) or units.MISSING,
        "Autotuned": "; ".join(autotuned_texts(facts)) or units.MISSING,
        "Compiled with": threads_text(trial) or units.MISSING,
        **dict(cache_texts(facts)),
    }


def memory_pairs(memory: Memory) -> dict[str, str | None]:
    """Peaks of the device and of the process, those of eager beside them."""
    ratio = (
        memory.control_peak_bytes / memory.peak_bytes
        if memory.control_peak_bytes and memory.peak_bytes
        else None
    )
    return {
        "Peak while running": units.size(memory.peak_bytes),
        **(
            {"In pools of CUDA graphs, whole": units.size(memory.graph_pool_bytes)}
            if memory.graph_pool_bytes
            else {}
        ),
        "Peak of eager": units.size(memory.control_peak_bytes),
        "Memory ratio (eager / this)": units.ratio(ratio),
        "Peak reserved": units.size(memory.peak_reserved_bytes),
        "Peak with compilation": units.size(memory.peak_with_compile_bytes),
        "Peak of the process (RSS)": units.size(memory.peak_rss_bytes),
        **({"Saved for backward": saved_text(memory.saved)} if memory.saved else {}),
        **({"Saved by eager": saved_text(memory.control_saved)} if memory.control_saved else {}),
    }


def numerics_pairs(numerics: Numerics) -> dict[str, str | None]:
    """How near the results are to those of the reference."""
    return {
        "Status": units.words(numerics.status.value),
        "Error": numerics_sentence(numerics) or None,
        "Training": losses_sentence(numerics.training) if numerics.training else None,
        "Reference": numerics.reference or units.MISSING,
        "Cosine similarity": exact(numerics.cosine_similarity),
        "Largest error": exact(numerics.max_abs_error),
        "RMSE of eager": exact(numerics.rmse_reference),
        "RMSE of compiled": exact(numerics.rmse_result),
        "Tolerance": exact(numerics.tolerance),
    }


def state_pairs(trial: Trial) -> dict[str, str | None]:
    """Clocks, temperatures, throttling and load while it was sampled, and why it is suspect."""
    device, host = trial.device_state, trial.host_state
    pairs: dict[str, str | None] = {}
    if device is not None:
        pairs |= {
            "SM clock (MHz)": _triple(device.sm_clock_mhz),
            "Memory clock (MHz)": _triple(device.memory_clock_mhz),
            "Temperature (°C)": _triple(device.temperature_c),
            "Power (W)": _triple(device.power_w),
            "GPU utilization": units.MISSING
            if device.utilization_percent is None
            else utilization_text(
                device.utilization_percent, eager=trial.strategy.kind is StrategyKind.EAGER
            ),
            "Clock limited by": ", ".join(map(clock_limit, device.throttle_reasons or [])) or "nothing",
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
    return pairs


def clock_limit(reason: str) -> str:
    """A reason of NVML's; the power cap, which is the normal state of a busy GPU, is said to be that."""
    return "power cap (sw_power_cap, normal under load)" if reason == "sw_power_cap" else reason


def environment_pairs(trial: Trial) -> dict[str, str | None]:
    """What is known of machine, every part of the build, and what makes the workload what it is."""
    build, machine = trial.build, trial.machine
    pairs: dict[str, str | None] = {
        "Machine": machine.name,
        "Device": f"{machine.device_name} ({machine.device})",
        "CPU": machine.cpu_name,
        "Process": process_text(trial) or units.MISSING,
        "Memory": units.size(machine.ram_bytes),
    }
    pairs |= {name.replace("_", " "): getattr(build, name) for name in BUILD_COMPONENTS}
    if trial.code is not None:
        pairs |= {
            "Code": code_name(trial.code.commit, trial.code.dirty, trial.code.source_hash),
            "Commit": trial.code.commit,
            "Hash of imported sources": trial.code.source_hash,
        }
    pairs |= {f"package {name}": version for name, version in sorted(build.packages.items())}
    pairs |= {f"setting {name}": str(value) for name, value in sorted(flat(build.settings).items())}
    pairs |= {
        "Workload version": trial.workload.version,
        "Batch size": units.count(trial.workload.batch_size),
        "Shape": ", ".join(f"{name} {size}" for name, size in trial.workload.shape.items()) or None,
        "dtype": trial.workload.dtype,
        "Ranks": units.count(trial.workload.ranks),
        "Source": f"{trial.source.kind.value}, {trial.source.name}",
    }
    return {name: text for name, text in pairs.items() if text not in (None, "", units.MISSING)}


def run_command(trial: Trial) -> str | None:
    """Measures its case anew; None where its names are code, which a record may not name."""
    if names_code(trial.workload.name, trial.strategy.name):
        return None
    parts = [
        "compilewatch run",
        f"--workload {shlex.quote(trial.workload.name)}",
        f"--strategy {shlex.quote(trial.strategy.name)}",
    ]
    if trial.suite:
        parts.insert(1, f"--suite {shlex.quote(trial.suite)}")
    return " ".join([*parts, "--trials 1"])


def exact(value: float | None) -> str:
    """Six significant digits."""
    return units.MISSING if value is None else f"{value:.6g}"


def _triple(values: Sequence[float] | None) -> str:
    return units.MISSING if values is None else " · ".join(f"{value:g}" for value in values)
