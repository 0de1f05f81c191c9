"""How a machine's processes are measured for its noise floor: in rounds, until a time that was given.

Every process is a trial as users get it: planned, supervised and stored in the same way, as a run of the
suite `validate`. After each round it is known better what a process takes, and whether another round fits.
"""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from compilewatch.db.engine.session import Database
from compilewatch.db.judge.statistics.noise_floor import MIN_PROCESSES, VALIDATION_SUITE
from compilewatch.db.records.requests import RunStatus
from compilewatch.db.records.trial import FailureKind, Status, Trial
from compilewatch.db.store.trials import start_run
from compilewatch.db.units import duration, plural, words
from compilewatch.runner.config.settings import Settings
from compilewatch.runner.device.lock import DeviceBusyError
from compilewatch.runner.doctor.checks import Probed, probe
from compilewatch.runner.plan.plan import Plan, plan_run
from compilewatch.runner.plan.trial_spec import TrialSpec, WorkloadSpec
from compilewatch.runner.process.execution import Progress
from compilewatch.runner.process.supervise import run_trial
from compilewatch.runner.storage.persistence import note_end, persist
from compilewatch.runner.storage.spool import Spool

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
