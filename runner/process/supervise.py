"""One trial, from outside: a fresh process with its own caches, a deadline, and always a `Trial` at the
end."""

from __future__ import annotations

import logging
import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from compilewatch.db.cause.compiler_change import bisection_sentence, replay_line
from compilewatch.db.errors import CompilewatchError, one_line
from compilewatch.db.records.evidence import Bisection, LossPath
from compilewatch.db.records.fields import first_problem
from compilewatch.db.records.sampling_facts import GeneratedSource, Profile
from compilewatch.db.records.trial import (
    CacheState,
    FailureKind,
    Numerics,
    NumericsStatus,
    Status,
    StrategyKind,
    Task,
    Trial,
)
from compilewatch.db.units import duration
from compilewatch.runner.config.scrub import scrub
from compilewatch.runner.device.lock import default_lock_dir, device_locks, wait_until_idle
from compilewatch.runner.device.state import device_facts, rank_devices
from compilewatch.runner.plan.trial_spec import TrialSpec, WorkloadSpec
from compilewatch.runner.process.explanation import Explanation, Fit, Held, NoFitError
from compilewatch.runner.process.measured_process import Attempt, Finished, OnPhase, ProcessRole, listen
from compilewatch.runner.process.trace import trace_directory, trace_in
from compilewatch.runner.worker.step.messages import Purpose, Record, read

_LOG = logging.getLogger("compilewatch.runner")
WAITING = "waiting for the device"
_PROBED: dict[Purpose, str] = {"submodules": "built", "explain": "explained", "fit": "run", "hold": "run"}
# What times nothing waits for nobody, and is in nobody's way for longer than a look.
_UNTIMED: tuple[Purpose, ...] = ("submodules", "explain")
_COMPILERS_OWN = (FailureKind.WRONG_RESULT, FailureKind.COMPILE_ERROR)
_PRIMED = (CacheState.WARM, CacheState.PORTABLE, CacheState.PACKAGED)


class TrialInterrupted(KeyboardInterrupt):
    """Ctrl-C during a trial: its processes are gone; store `trial`, then stop.

    It says `cancelled`, or is whole where only a pass after it was cut short.
    """

    def __init__(self, trial: Trial) -> None:
        super().__init__()
        self.trial = trial


def run_trial(
    spec: TrialSpec,
    *,
    interpreter: str | Path = sys.executable,
    on_phase: OnPhase | None = None,
    is_cancelled: Callable[[], bool] = lambda: False,
    wait_s: float | None = None,
) -> Trial:
    """Measure one case once in a fresh process and return its record, a failed one for any death.

    Waits for the locks of its devices first, `wait_s` at most. `on_phase` hears each phase as it begins, and
    every few seconds of a wait `WAITING` and what for. `is_cancelled` is called a few times a second; when
    true the trial ends as `cancelled`.
    The diagnostics of `spec` follow a trial that succeeded. Raises TrialInterrupted on Ctrl-C, and
    DeviceBusyError when it waited in vain or where no lock can be had.
    """
    report_phase = on_phase or (lambda _phase: None)
    device = device_facts(spec.device)
    attempt = Attempt(spec, str(interpreter), is_cancelled, device, report_phase)
    with device_locks(
        _devices(spec),
        default_lock_dir(),
        what=spec.case,
        wait_s=wait_s,
        should_stop=is_cancelled,
        on_wait=(on_wait := _on_wait(report_phase)),
    ) as locks:
        for each in rank_devices(spec.device, spec.workload.ranks):
            wait_until_idle(each, spec.idle_wait_s, should_stop=is_cancelled, on_wait=on_wait)
        attempt.begin()
        return _run(attempt, locks)


def _devices(spec: TrialSpec) -> list[str]:
    """By which name each rank's device is locked."""
    return [device_facts(each).uuid or each for each in rank_devices(spec.device, spec.workload.ranks)]


def _on_wait(report_phase: OnPhase) -> Callable[[str], None]:
    """Tells whoever watches each time, and the log once."""
    is_announced = False

    def on_wait(text: str) -> None:
        nonlocal is_announced
        report_phase(f"{WAITING}: {text}")
        if not is_announced:
            is_announced = True
            _LOG.info("Waiting for the device: %s", text)

    return on_wait


def _run(attempt: Attempt, locks: Sequence[int]) -> Trial:
    scratch = Path(tempfile.mkdtemp(prefix="compilewatch-trial-"))
    cache = attempt.spec.strategy.cache
    try:
        if cache in _PRIMED:
            # Warm is what a second process finds in the same directories; the other two move one file only.
            caches = scratch / ("measure" if cache == CacheState.WARM else "prime")
            failed = _run_process(attempt, scratch, caches, locks, prime=True)
            if failed is not None:
                return failed
        trial = _run_process(attempt, scratch, scratch / "measure", locks, prime=False)
        assert trial is not None
        return _bisected(_explained(trial, attempt, scratch, locks), attempt, scratch, locks)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _explained(trial: Trial, attempt: Attempt, scratch: Path, locks: Sequence[int]) -> Trial:
    """`trial` with the results of its diagnostics. One that fails is logged, and its part stays unknown."""
    if trial.status is not Status.OK:
        return trial
    if attempt.spec.diagnostics.profile:
        trial = _profiled(trial, attempt, scratch, locks)
    if attempt.spec.diagnostics.loss_steps:
        trial = _trained(trial, attempt, scratch, locks)
    data_dir = attempt.spec.diagnostics.trace_into
    if data_dir is not None and trial.strategy.kind is not StrategyKind.EAGER:
        directory = trace_directory(data_dir, trial.trial_id)
        directory.mkdir(parents=True, exist_ok=True)
        # What is written into a cache is what there is to see, so this process starts from empty ones.
        role = ProcessRole(scratch / "trace", "trace", environment={"TORCH_TRACE": str(directory)})
        record = _record_of_pass(listen(attempt, scratch, role, locks), "trace", trial)
        if record is not None:
            trace = trace_in(data_dir, trial.trial_id)
            if trace is not None:
                trace = trace.model_copy(update={"sources": _sources(record, trial)})
            trial = trial.model_copy(update={"trace": trace})
    return trial


def _bisected(trial: Trial, attempt: Attempt, scratch: Path, locks: Sequence[int]) -> Trial:
    """`trial` with the part of the compiler that makes it fail, where that is asked for and can be told."""
    failure, budget_s = trial.failure, attempt.spec.diagnostics.bisect_s
    if failure is None or failure.kind not in _COMPILERS_OWN or not budget_s:
        return trial
    if trial.strategy.kind is not StrategyKind.COMPILE or trial.strategy.backend not in (None, "inductor"):
        return trial
    if attempt.spec.workload.ranks is not None:
        # An attempt that fails on one rank leaves the others in a collective.
        return trial
    attempt.on_phase(f"bisection, at most {duration(int(budget_s * 1e9))}")
    spec = attempt.spec.model_copy(update={"timeout_s": budget_s})
    # What is compiled for one attempt must not be found by the next.
    role = ProcessRole(scratch / "bisect", "bisect", environment={"TORCHINDUCTOR_FORCE_DISABLE_CACHES": "1"})
    record = _record_of_pass(listen(replace(attempt, spec=spec), scratch, role, locks), "bisection", trial)
    if record is None:
        return trial
    try:
        found = Bisection.model_validate(record.bisection)
    except ValidationError as error:
        problem = first_problem(error, "all of it")
        _LOG.warning("The bisection of %s is none: %s", trial.workload.name, problem)
        return trial
    # The first line is what a table shows.
    first, _, more = failure.message.partition("\n")
    lines = (f"{first.rstrip('.')}. {bisection_sentence(found)}", replay_line(found), more)
    named = failure.model_copy(update={"message": "\n".join(filter(None, lines)), "bisection": found})
    return trial.model_copy(update={"failure": named})


def _sources(record: Record, trial: Trial) -> list[GeneratedSource] | None:
    """The code that the compiler wrote, without what a log may not hold either."""
    try:
        sources = [GeneratedSource.model_validate(each) for each in record.sources or ()]
    except ValidationError as error:
        problem = first_problem(error, "all of it")
        _LOG.warning("The generated code of %s is none: %s", trial.workload.name, problem)
        return None
    return [each.model_copy(update={"source": scrub(each.source)}) for each in sources] or None


def _profiled(trial: Trial, attempt: Attempt, scratch: Path, locks: Sequence[int]) -> Trial:
    # The caches of the measured process hold what it compiled, so that the same code is watched. On a CPU
    # generated kernels are without names unless they are compiled with them, which is done once more.
    named = {"TORCHINDUCTOR_CPP_ENABLE_KERNEL_PROFILE": "1"} if trial.machine.device == "cpu" else {}
    role = ProcessRole(scratch / "measure", "profile", environment=named)
    record = _record_of_pass(listen(attempt, scratch, role, locks), "profile", trial)
    if record is None:
        return trial
    try:
        return trial.model_copy(update={"profile": Profile.model_validate(record.profile)})
    except ValidationError as error:
        problem = first_problem(error, "all of it")
        _LOG.warning("The profile of %s is not one: %s", trial.workload.name, problem)
        return trial


def _trained(trial: Trial, attempt: Attempt, scratch: Path, locks: Sequence[int]) -> Trial:
    """`trial` with its losses beside eager's; a trial that compiles no training has none."""
    if trial.strategy.kind is not StrategyKind.COMPILE or attempt.spec.workload.ranks is not None:
        return trial
    if trial.workload.task is not Task.TRAINING:
        _LOG.warning("%s is no training: it has no losses to compare", trial.workload.name)
        return trial
    role = ProcessRole(scratch / "measure", "losses")
    record = _record_of_pass(listen(attempt, scratch, role, locks), "losses", trial)
    if record is None:
        return trial
    try:
        path = LossPath.model_validate(record.losses)
    except ValidationError as error:
        problem = first_problem(error, "all of it")
        _LOG.warning("The losses of %s are none: %s", trial.workload.name, problem)
        return trial
    numerics = trial.numerics or Numerics(status=NumericsStatus.NOT_CHECKED)
    return trial.model_copy(update={"numerics": numerics.model_copy(update={"training": path})})


def _record_of_pass(finished: Finished, name: str, trial: Trial) -> Record | None:
    """The record of a pass that succeeded; None, with a warning, of one that did not.

    Raises TrialInterrupted on Ctrl-C: the trial before it is whole.
    """
    if finished.interrupted:
        raise TrialInterrupted(trial)
    if finished.listening.succeeded():
        return finished.listening.records[0]
    messages = [record.failure.message for record in finished.listening.records if record.failure]
    reason = (
        scrub(messages[0]).partition("\n")[0] if messages else finished.outcome.stopped or "its process died"
    )
    _LOG.warning("No %s of %s / %s: %s", name, trial.workload.name, trial.strategy.name, reason)
    return None


def run_canaries(
    specs: Sequence[TrialSpec],
    *,
    interpreter: str | Path = sys.executable,
    on_phase: OnPhase = lambda _phase: None,
    is_cancelled: Callable[[], bool] = lambda: False,
    wait_s: float | None = None,
) -> list[Trial]:
    """Measure the canaries of one run, `specs`, in one fresh process; one record each, none when cancelled.

    Raises as `run_trial` does.
    """
    attempt = Attempt(specs[0], str(interpreter), is_cancelled, device_facts(specs[0].device))
    workloads = [spec.workload for spec in specs]
    finished = _listen_apart(attempt, "canaries", workloads, on_wait=_on_wait(on_phase), wait_s=wait_s)
    if finished.interrupted or finished.outcome.stopped == "cancelled":
        return []
    trials = []
    for spec in specs:
        # The process's record with one canary's samples in it; a failure is the failure of each.
        name = spec.workload.name
        records = [
            read(Record, vars(record) | (record.canaries or {}).get(name, {}))
            for record in finished.listening.records
        ]
        trials.append(finished.trial(attempt, spec, records))
    return trials


def run_probes(
    spec: TrialSpec, workloads: Sequence[WorkloadSpec], is_cancelled: Callable[[], bool]
) -> tuple[dict[str, Any] | None, str]:
    """Probe the timing of `workloads` under the conditions of `spec`, in one fresh process: what
    `runner.worker.probes.measure` returned, or None and why.

    Raises as `run_trial` does, without TrialInterrupted.
    """
    attempt = Attempt(spec, sys.executable, is_cancelled, device_facts(spec.device))
    finished = _listen_apart(attempt, "probes", workloads)
    if finished.listening.succeeded():
        probes = finished.listening.records[0].probes
        return (probes, "") if isinstance(probes, dict) else (None, "The process sent nothing.")
    failure = finished.trial(attempt, spec).failure
    return None, failure.message if failure else "The process ended without a word."


def run_submodules(spec: TrialSpec, interpreter: str | Path) -> list[str]:
    """Paths of the direct submodules of the model of `spec`, which one fresh process builds.

    Raises CompilewatchError where it cannot be built, and as `run_trial` does.
    """
    probes = _probed(spec, interpreter, "submodules").probes
    paths = probes.get("submodules") if isinstance(probes, dict) else None
    return [path for path in paths if isinstance(path, str)] if isinstance(paths, list) else []


def run_explained(spec: TrialSpec, interpreter: str | Path) -> Explanation:
    """What the compiler takes of the workload of `spec`, found out by one fresh process without generating
    code. Raises CompilewatchError where it cannot be run, and as `run_trial` does.
    """
    record = _probed(spec, interpreter, "explain")
    return Explanation.model_validate({**(record.probes or {}), "compiler": record.compiler or {}})


def run_fit(spec: TrialSpec, interpreter: str | Path) -> Fit:
    """What a step of `spec` takes alone in a fresh process. Raises NoFitError where memory does not suffice,
    CompilewatchError where anything else fails, and as `run_trial` does.
    """
    return Fit.model_validate(_probed(spec, interpreter, "fit").probes)


def run_held(spec: TrialSpec, interpreter: str | Path) -> Held:
    """What memory is held for in a step of `spec` alone in a fresh process. Raises as `run_fit`."""
    return Held.model_validate(_probed(spec, interpreter, "hold").probes)


def _probed(spec: TrialSpec, interpreter: str | Path, purpose: Purpose) -> Record:
    attempt = Attempt(spec, str(interpreter), lambda: False, device_facts(spec.device))
    finished = _listen_apart(attempt, purpose, ())
    if finished.interrupted:
        raise KeyboardInterrupt
    if not finished.listening.succeeded():
        failure = finished.trial(attempt, spec).failure
        reason = one_line(failure.message) if failure else "no reason"
        if failure is not None and failure.kind is FailureKind.OUT_OF_MEMORY:
            raise NoFitError(reason)
        raise CompilewatchError(
            f"{spec.workload.name} could not be {_PROBED[purpose]}: {reason}",
            f"See it with `compilewatch run -w {spec.workload.name} -s eager --trials 1`.",
        )
    return finished.listening.records[0]


def _listen_apart(
    attempt: Attempt,
    purpose: Purpose,
    workloads: Sequence[WorkloadSpec],
    *,
    on_wait: Callable[[str], None] = lambda _text: None,
    wait_s: float | None = None,
) -> Finished:
    """One process that measures something else than a trial, from caches of its own."""
    scratch = Path(tempfile.mkdtemp(prefix="compilewatch-trial-"))
    role = ProcessRole(scratch / "measure", purpose, tuple(workloads))
    try:
        if purpose in _UNTIMED:
            attempt.begin()
            return listen(attempt, scratch, role, ())
        with device_locks(
            _devices(attempt.spec),
            default_lock_dir(),
            what=purpose,
            wait_s=wait_s,
            should_stop=attempt.is_cancelled,
            on_wait=on_wait,
        ) as locks:
            attempt.begin()
            return listen(attempt, scratch, role, locks)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _run_process(
    attempt: Attempt, scratch: Path, caches: Path, locks: Sequence[int], *, prime: bool
) -> Trial | None:
    """One process of the trial. The priming one fills a cache and is not recorded: None unless it fails."""
    finished = listen(attempt, scratch, ProcessRole(caches, "prime" if prime else "measure"), locks)
    if prime and not finished.interrupted and finished.listening.succeeded():
        return None
    trial = finished.trial(attempt, attempt.spec)
    if finished.interrupted:
        raise TrialInterrupted(trial)
    return trial
