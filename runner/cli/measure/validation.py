"""How a machine's processes are measured for its noise floor, in rounds, until a time that was given; and
what the validation is held to: every figure, its aim, and whether it was reached.

Every process is a trial as users get it: planned, supervised and stored in the same way, as a run of the
suite `validate`. After each round it is known better what a process takes, and whether another round fits.
"""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum

from pydantic import ValidationError

from compilewatch.db.engine.session import Database
from compilewatch.db.judge.statistics.noise_floor import (
    MIN_PROCESSES,
    SPEEDUP,
    VALIDATION_SUITE,
    Scatter,
    largest_variation,
)
from compilewatch.db.records.fields import Count, Finite, Flag, Name, Record, Text, first_problem
from compilewatch.db.records.requests import RunStatus
from compilewatch.db.records.trial import FailureKind, Status, TimingMethod, Trial
from compilewatch.db.records.vocabulary import Bound
from compilewatch.db.store.trials import start_run
from compilewatch.db.units import count, duration, percent, plural, ratio, words
from compilewatch.runner.config.settings import Settings
from compilewatch.runner.device.lock import DeviceBusyError
from compilewatch.runner.plan.plan import Plan, plan_run
from compilewatch.runner.plan.trial_spec import TrialSpec, WorkloadSpec
from compilewatch.runner.process.execution import Progress
from compilewatch.runner.process.spool import Spool, note_end, persist
from compilewatch.runner.process.supervise import run_probes, run_trial

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


PROCESSES = 10
STRATEGY = "default"
WORKLOADS = {
    # Two that a fast GPU's host is too slow for, and two that keep the device busy.
    "cuda": ("elementwise", "encoder-512", "mlp-4096", "elementwise-4096"),
    "cpu": ("elementwise", "encoder", "cnn", "mlp-train"),
}
_IDLE_WAIT_S = 5.0
_RESERVE = 0.95
_PROBES_AT_MOST = 0.25


def plan_validation(settings: Settings, device: str, processes: int = PROCESSES) -> Plan:
    """The trials of `processes` rounds on `device`. Raises as `runner.plan.plan.plan_run` does."""
    kind = device.partition(":")[0]
    planned = plan_run(
        settings, workloads=WORKLOADS[kind], strategies=[STRATEGY], trials=processes, device=device
    )
    suite = {"suite": VALIDATION_SUITE}
    return planned.model_copy(
        update={
            "runs": tuple(run.model_copy(update=suite) for run in planned.runs),
            "trials": tuple(
                spec.model_copy(update=suite | {"idle_wait_s": _IDLE_WAIT_S}) for spec in planned.trials
            ),
        }
    )


@dataclass
class Measured:
    """What was measured: the trials that are stored, what was cut and why, and the pass of probes (None on a
    CPU).
    """

    run_id: str
    trials: list[Trial] = field(default_factory=list)
    cut: list[str] = field(default_factory=list)
    probed: Probed | None = None
    interrupted: bool = False
    seconds: float = 0.0


def affordable(seconds: Mapping[str, float], remaining_s: float, rounds: int) -> list[str]:
    """The workloads of which `rounds` more processes each fit into `remaining_s`, by the seconds that one
    takes. Where those of all do not, the costliest are left out, so that the others have a figure.
    """
    chosen = dict(seconds)
    while chosen and rounds * sum(chosen.values()) > remaining_s:
        del chosen[max(chosen, key=chosen.__getitem__)]
    return list(chosen)


class Validator:
    """Measures the rounds of a plan within `budget_s` seconds.

    `measure` measures one trial and `probes` the pass within; `clock` counts seconds.
    """

    def __init__(
        self,
        database: Database,
        spool: Spool,
        *,
        budget_s: float,
        is_stopped: Callable[[], bool],
        progress: Progress,
        clock: Callable[[], float] = time.monotonic,
        measure: Callable[..., Trial] = run_trial,
        probes: Callable[[TrialSpec, list[WorkloadSpec], Callable[[], bool]], Probed] = probe,
    ) -> None:
        self._database, self._spool = database, spool
        self._budget_s, self._clock, self._began = budget_s, clock, clock()
        self._is_stopped = is_stopped
        self._progress = progress
        self._measure, self._probes = measure, probes
        self._durations_s: dict[str, list[float]] = {}
        self._started = 0

    def run(self, plan: Plan) -> Measured:
        """Measure, store and end the run. Raises DatabaseError where the run cannot be announced."""
        (run,) = plan.runs
        measured = Measured(run.run_id)
        now = datetime.now(UTC)
        # How many it will be is not known before the first ones have ended.
        start_run(
            self._database,
            run_id=run.run_id,
            suite=run.suite,
            label=run.label,
            started_at=now,
            planned_trials=None,
        )
        rounds = [list(specs) for _, specs in itertools.groupby(plan.trials, key=lambda spec: spec.round)]
        try:
            self._rounds(rounds, measured)
        finally:
            measured.interrupted = self._is_stopped()
            measured.seconds = self._clock() - self._began
            status = RunStatus.CANCELLED if measured.interrupted else RunStatus.FINISHED
            note_end(run.run_id, datetime.now(UTC), status, self._database, self._spool)
        return measured

    def _remaining_s(self) -> float:
        return self._budget_s - (self._clock() - self._began)

    def _is_exhausted(self) -> bool:
        return self._is_stopped() or self._remaining_s() <= 0

    def _rounds(self, rounds: Sequence[Sequence[TrialSpec]], measured: Measured) -> None:
        names = [spec.workload.name for spec in rounds[0]]
        for spec in rounds[0]:
            self._one(spec, measured)
        if rounds[0][0].device != "cpu" and not self._is_exhausted():
            measured.probed = self._probe(rounds[0])
        passed = {trial.workload.name for trial in measured.trials if trial.status is Status.OK}
        chosen = [name for name in names if name in passed]
        for number, specs in enumerate(rounds[1:], start=1):
            typical = {name: statistics.median(self._durations_s[name]) for name in chosen}
            fitting = affordable(typical, _RESERVE * self._remaining_s(), max(1, MIN_PROCESSES - number))
            # From three on, each has a figure, and all get the same number.
            if self._is_stopped() or not fitting or (number >= MIN_PROCESSES and fitting != chosen):
                break
            chosen = fitting
            for spec in specs:
                if spec.workload.name in chosen:
                    self._one(spec, measured)
        if not self._is_stopped():
            measured.cut += cuts(names, measured.trials, len(rounds), self._budget_s)

    def _one(self, spec: TrialSpec, measured: Measured) -> None:
        """Measure and store one trial; one that the end of the time cut short is no result."""
        if self._is_exhausted():
            return
        self._started += 1
        self._progress.trial_started(self._started, spec.workload.name, spec.strategy.name, None)
        began = self._clock()
        timely = spec.model_copy(update={"timeout_s": min(spec.timeout_s, max(1.0, self._remaining_s()))})
        try:
            trial = self._measure(timely, on_phase=self._progress.phase, is_cancelled=self._is_exhausted)
        except DeviceBusyError:
            if not self._is_exhausted():
                raise
            return
        self._durations_s.setdefault(spec.workload.name, []).append(self._clock() - began)
        cancelled = trial.failure is not None and trial.failure.kind is FailureKind.CANCELLED
        if cancelled and not self._is_stopped():
            return
        persist(trial, self._database, self._spool)
        self._progress.trial_finished(trial)
        measured.trials.append(trial)

    def _probe(self, specs: Sequence[TrialSpec]) -> Probed:
        """The pass, in a quarter of the time at most."""
        limit_s = max(1.0, min(self._remaining_s(), _PROBES_AT_MOST * self._budget_s))
        self._progress.phase("probes")
        timely = specs[0].model_copy(update={"timeout_s": limit_s})
        try:
            return self._probes(timely, [spec.workload for spec in specs], self._is_exhausted)
        except DeviceBusyError as error:
            return Probed(problem=error.message)


def cuts(names: Sequence[str], trials: Sequence[Trial], planned: int, budget_s: float) -> list[str]:
    """One sentence for each thing that was planned and not measured."""
    within = duration(budget_s * 1e9)
    counts: dict[str, int] = {}
    sentences = []
    for name in names:
        mine = [trial for trial in trials if trial.workload.name == name]
        failed = [trial.failure for trial in mine if trial.failure is not None]
        if failed:
            sentences.append(
                f"{plural(len(failed), 'trial')} of {name} failed: {words(failed[0].kind.value)}."
            )
        passed = len(mine) - len(failed)
        if passed >= MIN_PROCESSES:
            counts[name] = passed
        elif not failed:
            sentences.append(
                f"{name} has no figure: {MIN_PROCESSES} fresh processes of it do not fit into {within}."
            )
    fewest = min(counts.values(), default=planned)
    if fewest < planned and not any(trial.failure for trial in trials):
        others = "" if len(counts) == len(names) else "other "
        sentences.append(f"Each {others}workload has {plural(fewest, 'process')} of {planned} in {within}.")
    return sentences
