"""What one trial told, as names and texts: figures, compiler, memory, numerics, its surroundings."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import pandas as pd

from dashboard.read.shaping import BUILD_COMPONENTS, number
from dashboard.render.foreign_text import readable
from db.cause.compiler_change import autotuned_texts, generated_text
from db.metrics.device_times import bound_of
from db.metrics.summary import SampleSummary, summarize_samples
from db.records.strategies import names_code
from db.records.trial import (
    CacheCounters,
    ColdStart,
    CompilerFacts,
    Memory,
    Numerics,
    SourceKind,
    StrategyKind,
    Summary,
    Trial,
)
from db.wording import units
from db.wording.marks import UNGATED_MEANS, timing_text
from db.wording.metrics import METRICS
from db.wording.numerics import numerics_sentence
from db.wording.trials import device_times, measurements, timing_facts, timing_finding


def figures(trial: Trial) -> list[tuple[str, str, str]]:
    """Title, text and explanation of the trial's main figures, those that are known."""
    found: list[tuple[str, str, str]] = []
    own, control = (
        summarize_samples(trial.latency_samples_ns),
        summarize_samples(trial.control_latency_samples_ns),
    )
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
    return f"Median of {units.plural(summary.n, 'sample')}; {parts}."


def only_a_summary(summary: Summary) -> str:
    """What there is of an imported result that has no samples."""
    return f"This result carries no samples, only a summary: {measurements(summary)}."


def until_steady(start: ColdStart) -> str:
    """When it was steady. A cost that a source states net of steady calls has none of them in it."""
    took = units.duration(start.until_steady_ns)
    if start.calls_until_steady == 0:
        return f"Compile cost {took}, as the source states it."
    calls = (
        "" if start.calls_until_steady is None else f"{units.plural(start.calls_until_steady, 'call')} and "
    )
    return f"Steady after {calls}{took}. Phases read from: {start.phase_source or 'unknown'}."


@dataclass(frozen=True)
class Timing:
    """The times of a GPU and how they were taken: `times` a row per time, `facts` a row per fact."""

    finding: str
    note: str
    times: pd.DataFrame
    facts: pd.DataFrame


TIME_TITLES = {"name": "Time", "own": "", "eager": "Eager", "speedup": "Speedup", "samples": "Samples (n)"}
FACT_TITLES = {"name": "Taken", "own": "", "eager": "Eager"}


def timing(trial: Trial) -> Timing | None:
    """None of a CPU, and where nothing was timed."""
    times = device_times(trial)
    if not times:
        return None
    found, note = timing_finding(trial), UNGATED_MEANS
    if trial.timing is not None:
        headline = METRICS[trial.timing.headline.value].word
        flush = trial.timing.flush_l2
        flushed = "" if flush is None else f", L2 cache {'' if flush else 'not '}flushed before each sample"
        note = f"Medians. Latency is the {headline}{flushed}."
    return Timing(
        finding=found or "How a step was timed",
        note=note,
        times=pd.DataFrame([asdict(each) for each in times]),
        facts=pd.DataFrame(_timing_facts(trial)),
    )


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


def side_titles(titles: Mapping[str, str], trial: Trial) -> dict[str, str]:
    """`titles` with the name of the strategy over its own side; without a column of eager beside eager."""
    named = {name: title or trial.strategy.name for name, title in titles.items()}
    alone = () if trial.strategy.kind is not StrategyKind.EAGER else ("eager", "speedup")
    return {name: title for name, title in named.items() if name not in alone}


def compiler_pairs(facts: CompilerFacts) -> dict[str, str | None]:
    """Graphs, and what the caches of the compiler answered."""
    cache = facts.cache or CacheCounters()
    return {
        "Graphs": units.count(facts.graphs),
        "Ops captured": units.count(facts.ops_captured),
        "CUDA graph launches": units.count(facts.cudagraph_launches),
        "Generated code": generated_text(facts) or units.MISSING,
        "Autotuned": "; ".join(autotuned_texts(facts)) or units.MISSING,
        "Recompile limit hit": _yes(facts.recompile_limit_hit),
        "FX graph cache": _answers(cache.fx_graph_hits, cache.fx_graph_misses, cache.fx_graph_bypasses),
        "AOTAutograd cache": _answers(
            cache.aot_autograd_hits, cache.aot_autograd_misses, cache.aot_autograd_bypasses
        ),
    }


def _answers(hits: int | None, misses: int | None, bypasses: int | None) -> str:
    """What a cache answered; graphs that it cannot hold are named where there are any."""
    if hits is None and misses is None:
        return units.MISSING
    refused = f", {units.count(bypasses)} it cannot hold" if bypasses else ""
    return f"{units.count(hits)} hits, {units.count(misses)} misses{refused}"


def memory_pairs(found: Memory) -> dict[str, str | None]:
    """Peaks of the device and of the process, those of eager beside them."""
    ratio = (
        found.control_peak_bytes / found.peak_bytes if found.control_peak_bytes and found.peak_bytes else None
    )
    return {
        "Peak while running": units.size(found.peak_bytes),
        "Peak of eager": units.size(found.control_peak_bytes),
        "Memory ratio (eager / this)": units.ratio(ratio),
        "Peak reserved": units.size(found.peak_reserved_bytes),
        "Peak with compilation": units.size(found.peak_with_compile_bytes),
        "Peak of the process (RSS)": units.size(found.peak_rss_bytes),
    }


def numerics_pairs(found: Numerics) -> dict[str, str | None]:
    """How near the results are to those of the reference."""
    return {
        "Status": units.words(found.status.value),
        "Error": numerics_sentence(found) or None,
        "Reference": found.reference or units.MISSING,
        "Cosine similarity": exact(found.cosine_similarity),
        "Largest error": exact(found.max_abs_error),
        "RMSE of eager": exact(found.rmse_reference),
        "RMSE of compiled": exact(found.rmse_result),
        "Tolerance": exact(found.tolerance),
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
            "Utilization (%)": exact(device.utilization_percent),
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
    """Machine, every part of the build, and what makes the workload what it is."""
    build, machine = trial.build, trial.machine
    pairs: dict[str, str | None] = {
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
    return pairs


def commands(trial: Trial) -> list[str]:
    """Those that show this trial, repeat it, and measure its case anew."""
    shown = [f"compilewatch show {trial.trial_id}"]
    if trial.source.kind is not SourceKind.MEASURED:
        return shown
    again = run_command(trial)
    return [*shown, f"compilewatch reproduce {trial.trial_id}", *([again] if again else [])]


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


def _yes(value: bool | None) -> str:
    return units.MISSING if value is None else "yes" if value else "no"


def _triple(values: Sequence[float] | None) -> str:
    return units.MISSING if values is None else " · ".join(f"{value:g}" for value in values)


# Trials as rows of a list.

MOST_ROWS = 500
LONGEST_WHY = 200
FIGURES = {
    "latency": "Latency",
    "speedup": "Speedup",
    "first": "Time to first result",
    "peak": "Peak memory",
}
_TIMES = ("timing_method", "device_ns", "wall_pipelined_ns")


def trial_rows(frame: pd.DataFrame, builds: Mapping[str, str]) -> pd.DataFrame:
    """One row of texts per trial of `frame`, which has the oldest first; here the newest. `builds`: names."""
    newest = frame.iloc[::-1]
    speedup = newest["control_latency_ns"].astype("Float64") / newest["latency_ns"]
    return pd.DataFrame(
        {
            "workload": newest["workload_label"],
            "strategy": newest["strategy"],
            "status": newest["status"],
            "why": [
                _why(*found) for found in zip(newest["failure_kind"], newest["failure_message"], strict=True)
            ],
            "latency": [units.duration(value) for value in newest["latency_ns"]],
            "bound": list(map(_timing, *(newest[name].tolist() for name in _TIMES))),
            "speedup": [units.ratio(value) for value in speedup],
            "first": [units.duration(value) for value in newest["time_to_first_result_ns"]],
            "peak": [units.size(value) for value in newest["peak_bytes"]],
            "build": newest["build_id"].map(dict(builds)),
            "started": newest["started_at"],
            "trial": newest["trial_id"],
        }
    )


def _timing(method: object, device_ns: Any, wall_pipelined_ns: Any) -> str:
    """How the trial was timed and what bounds it: "gated, host-bound"; a dash on a CPU."""
    times = (number(device_ns), number(wall_pipelined_ns))
    return timing_text(method, bound_of(method, *times)) or units.MISSING


def _why(kind: object, message: object) -> str | None:
    """Kind and message of a failure, in one line of bounded length; None where there was none."""
    if not isinstance(kind, str):
        return None
    said = units.words(kind) + (f": {readable(message)}" if isinstance(message, str) else "")
    return said if len(said) <= LONGEST_WHY else f"{said[: LONGEST_WHY - 1]}…"
