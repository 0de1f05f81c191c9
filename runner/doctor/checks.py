"""What a validation is held to: every figure, its aim, and whether it was reached."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from pydantic import ValidationError

from compilewatch.db.judge.statistics.noise_floor import SPEEDUP, Scatter, largest_variation
from compilewatch.db.records.fields import Count, Finite, Flag, Name, Record, Text, first_problem
from compilewatch.db.records.trial import TimingMethod, Trial
from compilewatch.db.records.vocabulary import Bound
from compilewatch.db.units import count, duration, percent, plural, ratio
from compilewatch.runner.plan.trial_spec import TrialSpec, WorkloadSpec
from compilewatch.runner.process.supervise import run_probes

EFFECT = 0.05
CALM_TRIALS, NOISY_TRIALS = 5, 30
"""Trials a side in which a change of `EFFECT` should show: for what the device alone decides and for ratios,
and for everything that the host has a part in."""
VERIFIED = 0.99
AGREEMENT = 0.02
GAP_NS = 2_000
"""What the device may need between two kernels, which CUPTI's intervals leave out."""
FLUSH_EFFECT = 0.05
FILLS_BEFORE_REPLAY = 2
_CALM = ("device_time", SPEEDUP)


class AimVerdict(StrEnum):
    """Whether an aim was reached."""

    MET = "met"
    MISSED = "missed"
    UNKNOWN = "not measured"


@dataclass(frozen=True)
class Check:
    """One figure of a validation. `value` is a fraction, a ratio or a count, None where there is none; `fact`
    says it, or why there is none.
    """

    name: str
    case: str
    value: float | None
    fact: str
    aim: str
    verdict: AimVerdict
    bound: Bound | None = None


def aim_cv(metric: str) -> float:
    """The largest variation between processes at which few enough trials show a change of `EFFECT`."""
    return largest_variation(EFFECT, CALM_TRIALS if metric in _CALM else NOISY_TRIALS)


def variation_checks(scatters: Iterable[Scatter]) -> Iterator[Check]:
    """How far fresh processes differ, metric by metric."""
    for each in scatters:
        aim = aim_cv(each.metric)
        yield Check(
            each.metric,
            f"{each.workload} / {each.strategy}",
            each.cv,
            percent(each.cv),
            f"at most {percent(aim)}",
            _met(each.cv <= aim),
            each.bound,
        )


def gate_checks(trials: Sequence[Trial]) -> Iterator[Check]:
    """Samples that were behind the gate in time, of all sides of all trials; those of sides that no gate held
    count as none."""
    sides = [
        side
        for trial in trials
        if trial.timing is not None
        for side in (trial.timing.side, trial.timing.control)
        if side is not None
    ]
    samples = sum(side.gate.samples for side in sides if side.gate)
    verified = sum(side.gate.verified for side in sides if side.gate)
    others = sum(side.method is not TimingMethod.GATED for side in sides)
    share = None if samples == 0 else verified / samples
    fact = "no gate held any step" if share is None else f"{percent(share)} of {plural(samples, 'sample')}"
    if others:
        fact += f"; {others} of {plural(len(sides), 'side')} not gated"
    aim = f"at least {percent(VERIFIED)}, every side gated"
    verdict = _met(share is not None and share >= VERIFIED and not others)
    yield Check("verified_samples", "all", share, fact, aim, verdict)


def probe_checks(probed: Probed) -> Iterator[Check]:
    """What one process on the GPU found."""
    probes = probed.probes
    if probes is None:
        yield Check("probes", "all", None, probed.problem, "a process that ends", AimVerdict.UNKNOWN)
        return
    for each in probes.workloads:
        yield _cupti(each)
    for each in probes.workloads:
        yield _do_bench(each, probes)
    yield _flush(probes.l2)
    yield _graph(probes.graph)


def _met(is_met: bool) -> AimVerdict:
    return AimVerdict.MET if is_met else AimVerdict.MISSED


def _unknown(name: str, case: str, why: str, aim: str) -> Check:
    return Check(name, case, None, why, aim, AimVerdict.UNKNOWN)


def _cupti(probed: _ProbedWorkload) -> Check:
    """Gated device time over the union of kernel intervals; the gaps between kernels are allowed for."""
    case = f"{probed.workload} / eager"
    aim = f"within {percent(AGREEMENT)} of the kernels' time, and {duration(GAP_NS)} a launch above it"
    if not probed.gated_ns or not probed.kernels_ns:
        why = probed.error or ("no gate held it" if not probed.gated_ns else "nothing was traced")
        return _unknown("cupti_agreement", case, why, aim)
    value = probed.gated_ns / probed.kernels_ns
    gaps = GAP_NS * ((probed.launches or 0.0) + 1)
    most = (1 + AGREEMENT) * probed.kernels_ns + gaps
    fact = f"{ratio(value)}: {duration(probed.gated_ns)} gated, kernels {duration(probed.kernels_ns)}"
    met = (1 - AGREEMENT) * probed.kernels_ns <= probed.gated_ns <= most
    return Check("cupti_agreement", case, value, fact, aim, _met(met))


def _do_bench(probed: _ProbedWorkload, probes: Probes) -> Check:
    case, aim = f"{probed.workload} / eager", f"within {percent(AGREEMENT)}, where the device stays busy"
    if probed.do_bench_ratio is None:
        busy = "the host is the bottleneck, so do_bench measures it"
        why = probed.error or (busy if probes.has_do_bench else "Triton is not installed")
        return _unknown("do_bench_agreement", case, why, aim)
    value = probed.do_bench_ratio
    met = abs(value - 1) <= AGREEMENT
    return Check("do_bench_agreement", case, value, f"{ratio(value)} of do_bench", aim, _met(met))


def _flush(probed: _ProbedFlush) -> Check:
    case, aim = "half of the L2 cache, read", f"at least {percent(FLUSH_EFFECT)} slower after a flush"
    if not probed.warm_ns or not probed.cold_ns:
        return _unknown("l2_flush", case, probed.error or "no gate held it", aim)
    value = probed.cold_ns / probed.warm_ns - 1
    latencies = f"{duration(probed.warm_ns)} cached, {duration(probed.cold_ns)} flushed"
    fact = f"{percent(value, signed=True)}: {latencies}"
    return Check("l2_flush", case, value, fact, aim, _met(value >= FLUSH_EFFECT))


def _graph(probed: _ProbedGraph) -> Check:
    case, aim = f"a graph of {plural(probed.kernels, 'kernel')}", "1 launch a replay, gated"
    if not probed.gated_ns or probed.graph_launches is None:
        why = probed.error or ("no gate held it" if not probed.gated_ns else "nothing was traced")
        return _unknown("graph_launches", case, why, aim)
    value = float(probed.graph_launches)
    launches = f"{count(value)} of {plural(round(probed.launches or 0), 'launch')}"
    fact = f"{launches}, {duration(probed.gated_ns)} gated"
    # Before 2.7 torch fills two tensors of its own before each replay.
    is_one = value == 1 and 1 <= (probed.launches or 0) <= 1 + FILLS_BEFORE_REPLAY
    return Check("graph_launches", case, value, fact, aim, _met(is_one))


class Observed(Record):
    """What CUPTI saw of a step. `error`: why a probe broke off; what came before it is there."""

    kernels_ns: Finite | None = None
    launches: Finite | None = None
    graph_launches: Count | None = None
    streams: Count | None = None
    error: Text | None = None


class _ProbedWorkload(Observed):
    """One workload, eager: medians in nanoseconds, its gated time by turns with CUPTI's, and over that of
    `do_bench`.
    """

    workload: Name
    gated_ns: Finite | None = None
    wall_pipelined_ns: Finite | None = None
    do_bench_ratio: Finite | None = None


class _ProbedFlush(Record):
    """Device time of a step whose input the L2 cache holds, and after a flush, in nanoseconds."""

    read_bytes: Count | None = None
    warm_ns: Finite | None = None
    cold_ns: Finite | None = None
    error: Text | None = None


class _ProbedGraph(Observed):
    """A CUDA graph of `kernels` kernels behind the gate."""

    kernels: Count
    gated_ns: Finite | None = None


class Probes(Record):
    """The whole pass. `has_do_bench`: whether Triton is installed."""

    has_do_bench: Flag
    workloads: list[_ProbedWorkload]
    l2: _ProbedFlush
    graph: _ProbedGraph


@dataclass(frozen=True)
class Probed:
    """The pass, or why there is none."""

    probes: Probes | None = None
    problem: str = ""


def probe(spec: TrialSpec, workloads: list[WorkloadSpec], is_stopped: Callable[[], bool]) -> Probed:
    """Run the pass under the conditions of `spec`, until `is_stopped`. Raises as `run_probes` does."""
    content, problem = run_probes(spec, workloads, is_stopped)
    if content is None:
        return Probed(problem=problem)
    try:
        return Probed(Probes.model_validate(content))
    except ValidationError as error:
        return Probed(problem=f"What the process sent is no pass: {first_problem(error, 'all of it')}.")
