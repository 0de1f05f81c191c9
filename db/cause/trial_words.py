"""What a trial measured, as names and texts: its figures, what a source states, how samples were taken.

How far a compiled result is from the exact one. The times of a GPU: which there are, how they were taken,
what bounds a step, and what its operations and bytes would take at the rates of the machine's canaries.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from compilewatch.db.columns.metrics import METRICS
from compilewatch.db.metrics.throughput import items_of, per_second
from compilewatch.db.metrics.trial_times import bound_of, latencies_ns
from compilewatch.db.records.evidence import LossPath
from compilewatch.db.records.sampling_facts import Gate, SamplingFacts, StreamFacts, TimedState, TimingSide
from compilewatch.db.records.trial import (
    UNGATED_MEANS,
    Numerics,
    NumericsStatus,
    SourceKind,
    StrategyKind,
    Summary,
    TimingMethod,
    Trial,
    bound_word,
    compile_threads_of,
    timing_method_of,
)
from compilewatch.db.units import MISSING, count, duration, percent, plural, rate, ratio, words


@dataclass(frozen=True, slots=True)
class TimeOfSides:
    """One of the times of a GPU, as texts: medians, eager over this side, and how many samples each has."""

    name: str
    own: str
    eager: str
    speedup: str
    samples: str


def device_times(trial: Trial) -> list[TimeOfSides]:
    """Every time that was taken of a GPU's steps; none of another trial."""
    method = timing_method_of(trial)
    if method in (None, TimingMethod.HOST):
        return []
    entries = [METRICS[key] for key in ("device_time", "issue_time", "wall_sync", "wall_pipelined")]
    fields = {entry.column: entry.name for entry in entries}
    fields |= {"samples_ns": "Events without a gate", "host_samples_ns": "Host clock, synchronised"}
    return [
        _of_sides(name, getattr(trial, field), getattr(trial, f"control_{field}"))
        for field, name in fields.items()
        if len(getattr(trial, field))
    ]


def _of_sides(name: str, own: Sequence[int], eager: Sequence[int]) -> TimeOfSides:
    alike = len(own) == len(eager) or not len(eager)
    samples = count(len(own)) if alike else f"{count(len(own))} (eager {count(len(eager))})"
    if not len(eager):
        return TimeOfSides(name, duration(median(own)), MISSING, MISSING, samples)
    medians = median(own), median(eager)
    speedup = ratio(medians[1] / medians[0]) if medians[0] else MISSING
    return TimeOfSides(name, duration(medians[0]), duration(medians[1]), speedup, samples)


def timing_finding(trial: Trial) -> str:
    """What the times say: "Host-bound: a pipelined step takes 1.3 ms, the device needs 830 us of it"."""
    method, bound = timing_method_of(trial), trial_bound(trial)
    if bound is None:
        return "Ungated times of a step" if method is TimingMethod.UNGATED else ""
    wall, device = duration(median(trial.wall_pipelined_ns)), duration(_loop_device_ns(trial))
    word = bound_word(bound).capitalize()
    return f"{word}: a pipelined step takes {wall}, of which the device needs {device}"


def trial_bound(trial: Trial) -> str | None:
    """`host` or `device`: what bounds this trial, by `db.metrics.trial_times.bound_of`."""
    wall = median(trial.wall_pipelined_ns) if len(trial.wall_pipelined_ns) else None
    return bound_of(timing_method_of(trial), _loop_device_ns(trial), wall)


def _loop_device_ns(trial: Trial) -> float | None:
    """As `db.metrics.trial_times.loop_device_ns`."""
    unflushed = trial.timing.side.unflushed_ns if trial.timing else None
    return unflushed or (median(trial.device_ns) if len(trial.device_ns) else None)


def timing_facts(side: TimingSide) -> dict[str, str]:
    """How one side was timed, by name; a dash for what is not known."""
    gate = side.gate
    inside = {True: "yes", False: "no", None: MISSING}
    clock = side.sm_clock_mhz
    return {
        "Method": str(side.method),
        "Gate": f"{words(gate.kind)}, {plural(gate.steps, 'step')}" if gate else MISSING,
        "Verified samples": _verified(gate) if gate else MISSING,
        "Retries": count(gate.retries) if gate else MISSING,
        "Launches per step": MISSING if side.launches is None else f"{side.launches:g}",
        "Synchronises inside": inside[side.synchronises],
        "Streams": count(side.streams),
        "Device time without a flush": duration(side.unflushed_ns),
        "Traced steps": _traced(side),
        "Steps per synchronisation": count(side.pipelined_steps),
        "SM clock (MHz)": MISSING if clock is None else " · ".join(f"{value:g}" for value in clock),
        "Clock limited by": ", ".join(side.throttle_reasons) or "nothing",
    }


def _traced(side: TimingSide) -> str:
    """Sessions of the device's own tracing: "8 of 10 whole", and why there is no time."""
    found = side.tracing
    if found is None:
        return MISSING
    problem = f": {found.problem}" if found.problem else ""
    return f"{count(found.whole)} of {count(found.sessions)} whole{problem}"


def _verified(gate: Gate) -> str:
    share = f" ({percent(gate.verified / gate.samples)})" if gate.samples else ""
    return f"{count(gate.verified)} of {count(gate.samples)}{share}"


def device_time_figures(trial: Trial) -> list[tuple[str, str]]:
    """How a GPU's steps were timed: method, gate, each time with eager's beside it, what bounds the trial."""
    times = device_times(trial)
    if not times:
        return []
    ungated = timing_method_of(trial) is TimingMethod.UNGATED
    figures = [("timing", UNGATED_MEANS if ungated else str(timing_method_of(trial)))]
    figures += [(each.name.lower(), _beside_eager(each)) for each in times]
    if trial_bound(trial):
        figures.append(("bound", bound_word(trial_bound(trial))))
    if trial.timing is not None:
        own = timing_facts(trial.timing.side)
        eager = timing_facts(trial.timing.control) if trial.timing.control else own
        for name in (
            *("Gate", "Verified samples", "Retries"),
            *("Launches per step", "SM clock (MHz)", "Clock limited by"),
        ):
            beside = "" if eager[name] == own[name] else f" (eager {eager[name]})"
            figures += [(f"  {name}", own[name] + beside)] if own[name] != MISSING else []
    return figures


def _beside_eager(time: TimeOfSides) -> str:
    beside = "" if time.eager == MISSING else f" (eager {time.eager}, {time.speedup})"
    return f"{time.own}{beside}, n = {time.samples}"


@dataclass(frozen=True)
class Roofs:
    """What a device reached a second: operations of a matrix product in `dtype`, bytes read and written."""

    dtype: str
    operations_per_s: float
    bytes_per_s: float


@dataclass(frozen=True)
class Roofline:
    """An eager step, in nanoseconds: its operations and its bytes at those rates, and what it takes."""

    operations_ns: float
    bytes_ns: float
    step_ns: float

    @property
    def bound(self) -> str:
        """By what a step is bound that does nothing else."""
        return "compute-bound" if self.operations_ns >= self.bytes_ns else "memory-bound"

    @property
    def sentence(self) -> str:
        operations, moved, step = map(duration, (self.operations_ns, self.bytes_ns, self.step_ns))
        work = f"operations need {operations}, bytes at most {moved}, of its {step}"
        return f"An eager step is {self.bound}: {work}."


def roofline(trial: Trial, roofs: Roofs | None) -> Roofline | None:
    """None where work, time or roofs are not known, or the product was measured in another dtype."""
    profile, step_ns = trial.profile, step_times(trial).eager_ns
    if profile is None or roofs is None or not profile.flops or not profile.bytes or not step_ns:
        return None
    if roofs.dtype != trial.workload.dtype:
        return None
    return Roofline(
        profile.flops / roofs.operations_per_s * 1e9, profile.bytes / roofs.bytes_per_s * 1e9, step_ns
    )


@dataclass(frozen=True, slots=True)
class StepTimes:
    """What a step of a trial takes where nothing profiles it, in nanoseconds: the strategy's and eager's.

    Pipelined wall time where a GPU was timed so, else latency; None where it is not known.
    """

    own_ns: float | None
    eager_ns: float | None


def step_times(trial: Trial) -> StepTimes:
    """Medians over the samples, else what the source states."""
    latency, control = latencies_ns(trial)
    own = _median(trial.wall_pipelined_ns) or latency
    eager = _median(trial.control_wall_pipelined_ns) or control
    return StepTimes(own, own if trial.strategy.kind is StrategyKind.EAGER else eager)


def _median(samples: Sequence[int]) -> float | None:
    return float(median(samples)) if len(samples) else None


def eager_before(trial: Trial) -> tuple[str, str] | None:
    """Eager's latency before anything was compiled and what it is made of: all that is known of a trial that
    was not sampled; None of another.
    """
    cold, is_eager = trial.cold_start, trial.strategy.kind is StrategyKind.EAGER
    if is_eager or trial.latency_samples_ns or trial.control_latency_samples_ns:
        return None
    if calls := trial.control_warmup_ns:
        return duration(median(calls)), f"median of {plural(len(calls), 'call')} before anything was compiled"
    first_ns = None if cold is None else cold.eager_first_ns
    return None if first_ns is None else (duration(first_ns), "its first call")


def compile_cost_text(trial: Trial) -> str | None:
    """What compiling cost, and in how many calls; None where the trial was not steady."""
    cold, latency_ns = trial.cold_start, _median(trial.latency_samples_ns)
    if cold is None or cold.until_steady_ns is None or cold.calls_until_steady is None:
        return None
    calls = cold.calls_until_steady
    if calls == 0:
        return f"{duration(cold.until_steady_ns)} as stated"
    if latency_ns is None or trial.strategy.kind is StrategyKind.EAGER:
        return None
    cost_ns = cold.until_steady_ns - calls * latency_ns
    return f"{duration(cost_ns)}, in {plural(calls, 'call')} until steady"


def threads_text(trial: Trial) -> str | None:
    """With how many threads it was compiled, and the processes that torch keeps for it; None where nobody
    knows.
    """
    threads, facts = compile_threads_of(trial), trial.compiler
    if threads is None:
        return None
    pool = facts.compile_pool_size if facts else None
    return plural(threads, "thread") + (f", {plural(pool, 'pool process')}" if pool else "")


def process_text(trial: Trial) -> str | None:
    """Threads of a step and precision of a trial of our own; None of another source.

    docs/measurement.md lists what else differs, with reasons and what each changes.
    """
    machine, settings = trial.machine, trial.build.settings
    if trial.source.kind is not SourceKind.MEASURED or machine.threads is None:
        return None
    environment = settings.get("environment")
    is_bound = isinstance(environment, dict) and "OMP_PROC_BIND" in environment
    of_all = f" on {plural(machine.cpu_count, 'CPU')}" if machine.cpu_count else ""
    threads = settings.get("threads", machine.threads)
    parts = [f"{plural(threads, 'thread')}{of_all}{', bound to cores' if is_bound else ''}"]
    if precision := settings.get("matmul_precision"):
        parts.append(f"matmul precision {precision}")
    return "; ".join(parts)


def throughput_figures(trial: Trial) -> list[tuple[str, str]]:
    """Items per second at the latency, and at eager's beside it; nothing where no latency is known."""
    own, eager = latencies_ns(trial)
    items, item = items_of(vars(trial.workload))
    sides = {"throughput": own, "eager throughput": eager if own else None}
    return [(name, rate(per_second(items, latency), item)) for name, latency in sides.items() if latency]


_ENDED_BY = {
    "interval": "which was enough",
    "samples": "at the limit of {max_samples} samples",
    "time": "at the limit of time",
    "deadline": "as the deadline of the trial was near",
    "disturbed": "with other work on the host in too many blocks",
}
_FLUSHED = {True: "L2 cache flushed before each", False: "L2 cache not flushed"}


def sample_count_text(sampling: SamplingFacts) -> str:
    """How well the median is known, what ended sampling and warm-up: "median known to ±1.10 %, ..." """
    known = "too few samples for an interval of the median"
    if sampling.reached_interval is not None:
        target = f" (target: ±{percent(sampling.relative_interval)})" if sampling.relative_interval else ""
        known = f"median known to ±{percent(sampling.reached_interval)}{target}"
    ended = _ENDED_BY.get(sampling.ended_by, "ended by {ended_by}")
    parts = [known, ended.format(max_samples=count(sampling.max_samples), ended_by=sampling.ended_by)]
    if sampling.flush_l2 is not None:
        parts.append(_FLUSHED[sampling.flush_l2])
    if sampling.warmup_ended_by not in (None, "steady"):
        parts.append("latency had not settled")
    if sampling.state is not None:
        parts.append(length_text(sampling.state))
    return ", ".join(parts)


def length_text(state: TimedState) -> str:
    """At which length it was timed: "at calls 11 to 15 of its state, put back before each block: ..." """
    calls = f"{count(state.first_call)} to {count(state.last_call)}"
    text = f"at calls {calls} of its state, put back before each block"
    if state.name is not None:
        text += f": {state.name}"
    if state.first_length is not None and state.last_length is not None:
        text += f" of {count(state.first_length)} to {count(state.last_length)} {state.unit}"
    return text + ("" if state.fails_at is None else f", eager fails at call {count(state.fails_at)}")


def main_figures(summary: Summary) -> list[tuple[str, str]]:
    """Latency with how many measurements it is made of, eager's, and the speedup; those that are stated."""
    latency, eager = summary.latency_ns, summary.control_latency_ns
    figures: list[tuple[str, str]] = []
    if latency is not None:
        figures.append(("latency", f"{duration(latency)} as stated, {measurements(summary)}"))
    if eager is not None:
        figures.append(("eager control", duration(eager)))
    if latency and eager is not None:
        figures.append(("speedup", ratio(eager / latency)))
    return figures


def other_figures(summary: Summary) -> list[tuple[str, str]]:
    """Throughput, then what has no field of its own, by the source's names and in its units."""
    rate_s = summary.throughput_per_s
    known = [] if rate_s is None else [("throughput as stated", rate(rate_s))]
    return [*known, *((name, f"{value:.10g}") for name, value in sorted(summary.metrics.items()))]


NOT_SPLIT = "not split: `for batch in record.batches(loader)` notes how long it waits for data"
"""What is said of steps of which nobody knows how long they waited for their batch."""


def loop_text(summary: Summary) -> str | None:
    """Where the loop of a recorded job spent its time, or what notes it; None where no step was recorded."""
    known = [summary.metrics.get(name) for name in ("loop_s", "loop_data_s", "loop_compile_s")]
    loop, data, compiling = (None if each is None else each * 1e9 for each in known)
    if not loop or data is None or compiling is None:
        return NOT_SPLIT if summary.metrics.get("steps_recorded") else None
    parts = ((data, "waiting for data"), (compiling, "compiling"), (loop - data - compiling, "in steps"))
    spent = ", ".join(f"{duration(ns)} {what} ({percent(ns / loop)})" for ns, what in parts)
    share = summary.metrics.get("steady_data_share")
    if not share:
        return f"{duration(loop)}: {spent}"
    at_most = f"at most {ratio(1 / share)} by faster steps"
    return f"{duration(loop)}: {spent}; steady, it waits for data {percent(share)} of the time: {at_most}"


def measurements(summary: Summary) -> str:
    """Of how many measurements it was made: "n = 30", "n unknown"."""
    return "n unknown" if summary.n is None else f"n = {count(summary.n)}"


def stream_texts(facts: StreamFacts) -> list[tuple[str, str]]:
    """The figures of a stream, those that are known."""
    texts = [("batches per iteration", f"{count(facts.batches)} of {plural(facts.shapes, 'shape')}")]
    if facts.policy is not None:
        texts.append(("bucket policy", facts.policy))
    if facts.tokens is not None:
        texts.append(("tokens per iteration", count(facts.tokens)))
    if facts.padding_fraction is not None:
        computed = f"{count(facts.padded_tokens)} computed"
        texts.append(("padding waste", f"{percent(facts.padding_fraction)} of {computed}"))
    if facts.latency_per_token_ns is not None:
        own, eager = facts.latency_per_token_ns, facts.control_latency_per_token_ns
        texts.append(("latency per token", _streams_beside_eager(own, eager)))
    if facts.iteration_ns and facts.data_ns is not None:
        of = f"{duration(facts.iteration_ns)} ({percent(facts.data_ns / facts.iteration_ns)})"
        texts.append(("waits for data", f"{duration(facts.data_ns)} of {of}"))
        texts += [("gains", text)] if (text := gains_text(facts)) else []
    if len(facts.first_batches_ns) == facts.batches:
        eager_ns = sum(facts.control_first_batches_ns) or None
        texts.append(("first iteration", _streams_beside_eager(sum(facts.first_batches_ns), eager_ns)))
    if facts.compiles is not None:
        spent = sum(each.took_ns for each in facts.compiles)
        texts.append(("compilations in it", f"{count(len(facts.compiles))}, {duration(spent)} together"))
    return texts


def gains_text(facts: StreamFacts) -> str | None:
    """How much faster steps are and how much the loop: "1.60x in the steps, 1.08x of the iteration"."""
    own, eager = facts.iteration_ns, facts.control_iteration_ns
    if not own or not eager or facts.data_ns is None or facts.control_data_ns is None:
        return None
    steps, of_eager = own - facts.data_ns, eager - facts.control_data_ns
    if steps <= 0 or of_eager <= 0:
        return None
    return f"{ratio(of_eager / steps)} in the steps, {ratio(eager / own)} of the iteration"


def _streams_beside_eager(own_ns: float, eager_ns: float | None) -> str:
    return duration(own_ns) + (f" (eager {duration(eager_ns)})" if eager_ns else "")


def compile_texts(facts: StreamFacts) -> list[tuple[str, str]]:
    """Where and why something was compiled, a row for each time."""
    of = count(facts.batches)
    rows = []
    for each in facts.compiles or ():
        reason = f": {each.reason}" if each.reason else ""
        text = f"{each.part or MISSING}, {duration(each.took_ns)}{reason}"
        rows.append((f"batch {count(each.batch)} of {of}", text))
    return rows


_DIFFERENCES = "finite differences"
"""What random gradients were held to, as `reference`."""
_STEPS = {
    "bfloat16": ("bf16", 2.0**-8),
    "float16": ("fp16", 2.0**-11),
    "float32": ("fp32", 2.0**-24),
    "float64": ("fp64", 2.0**-53),
}
"""Short name and unit roundoff of a dtype: half the distance from 1 to the next larger number (IEEE 754)."""


def numerics_sentence(numerics: Numerics) -> str:
    """ "relative error 0.38 %, 3.8 x eager's, about one bf16 step", and what was not compared; empty without
    either, as where there is no float64 reference.

    Records of version 1 do not hold the size of the result: there the error is given as it is.
    """
    left_out = f"not compared: {', '.join(numerics.not_compared)}" if numerics.not_compared else ""
    if left_out and numerics.status is NumericsStatus.REPRODUCIBLE:
        left_out = f"{', '.join(numerics.not_compared or ())} not compared with eager"
    by_differences = (
        "gradients agree with finite differences of the loss"
        if numerics.reference == _DIFFERENCES and numerics.status is NumericsStatus.REPRODUCIBLE
        else ""
    )
    return ", ".join(filter(None, (_error_text(numerics), by_differences, left_out)))


def losses_sentence(path: LossPath) -> str:
    """Whether a compiled training goes as eager's does: "As eager's for 50 steps, within what 4 other seeds
    do.", or where it leaves it.
    """
    steps = plural(len(path.losses), "step")
    if path.left_at_step is None:
        return f"As eager's for {steps}, within what {count(path.seeds)} other seeds do."
    times = "" if path.times_band is None else f", {_two_digits(path.times_band)} times as far as other seeds"
    own, eager = path.losses[-1], path.control_losses[-1]
    ends = f"{_loss(own)} instead of {_loss(eager)}"
    at = f"step {count(path.left_at_step)} by {path.left_by}"
    return f"Leaves eager's at {at}{times}; loss {ends} after {steps}."


def _loss(value: float | None) -> str:
    return "no number" if value is None else f"{value:.6g}"


def _error_text(numerics: Numerics) -> str:
    error, eager, size = numerics.rmse_result, numerics.rmse_reference, numerics.rms_exact
    if error is None:
        return ""
    relative = error / size if size else None
    parts = [
        f"error (RMSE) {_two_digits(error)}" if relative is None else f"relative error {_share(relative)}"
    ]
    if eager:
        parts.append(f"{_two_digits(error / eager)} x eager's")
    if relative is not None and numerics.dtype in _STEPS:
        parts.append(_in_steps(relative, *_STEPS[numerics.dtype]))
    return ", ".join(parts)


def _share(value: float) -> str:
    return f"{_two_digits(value * 100)} %" if value >= 1e-4 else f"{value:.1e}"


def _two_digits(value: float) -> str:
    return f"{float(f'{value:.1e}'):,g}"


def _in_steps(relative: float, name: str, step: float) -> str:
    steps, noun = relative / step, f"{name} step"
    if steps < 0.5:
        return f"less than half a {noun}"
    return f"about one {noun}" if steps < 1.5 else f"about {_two_digits(round(steps))} {noun}s"
