"""From a worker's lines and its end to one `Trial`: validated, or failed with the reason."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from pydantic import ValidationError

from compilewatch import __version__
from compilewatch.db.records.fields import first_problem
from compilewatch.db.records.trial import (
    Build,
    Code,
    Failure,
    FailureKind,
    HostState,
    Machine,
    Source,
    SourceKind,
    Status,
    Task,
    Trial,
)
from compilewatch.runner.config.scrub import scrub
from compilewatch.runner.device.state import DeviceFacts, DeviceWatch
from compilewatch.runner.plan.trial_spec import TrialSpec
from compilewatch.runner.process.failure import Ending, failure_of, log_tail, with_advice, with_cause
from compilewatch.runner.process.pipe import ProcessOutcome
from compilewatch.runner.worker.step.host import machine_facts
from compilewatch.runner.worker.step.messages import (
    SLOWED,
    Energy,
    Facts,
    Partial,
    Pause,
    Phase,
    Record,
    from_worker,
    read,
)
from compilewatch.runner.worker.step.messages import Failure as WorkerFailure


@dataclass
class Listening:
    """Hears a worker's lines as they come: phases, facts, pauses, the record; keeps what is not one."""

    on_phase: Callable[[str], None]
    watch: DeviceWatch
    phase: str | None = None
    facts: Facts | None = None
    records: list[Record] = field(default_factory=list)
    partial: Record | None = None
    """What the record had when it was last heard of."""
    garbage: str | None = None

    def succeeded(self) -> bool:
        """Whether the worker reported success and nothing else came through its pipe."""
        return self.garbage is None and [record.status for record in self.records] == [Status.OK]

    def receive(self, line: bytes) -> bytes | None:
        """Take in one line; the answer goes to the worker's standard input."""
        try:
            message = from_worker(line)
        except (ValueError, TypeError, KeyError, RecursionError):
            self.garbage = self.garbage or "The record pipe carried something that is no mark of the worker"
            return None
        match message:
            case Phase():
                self.phase = str(message.phase)
                self.on_phase(self.phase)
            case Facts() if _are_facts(message):
                self.facts = message
            case Facts():
                self.garbage = self.garbage or "The worker sent impossible facts of its machine and build"
            case Pause():
                return SLOWED if self.watch.sample(str(message.side)) else b"\n"
            case Energy(side=str(side), steps=int(steps)):
                self.watch.note_energy(side, steps)
                return b"\n"
            case Energy():
                self.garbage = self.garbage or "The worker counted no whole number of steps"
            case Partial():
                self.partial = read(Record, message.record)
            case Record():
                self.records.append(message)
        return None


def _are_facts(facts: Facts) -> bool:
    try:
        Machine(**facts.machine)
        Build(**facts.build)
    except (ValidationError, TypeError):
        return False
    return True


def _fault(outcome: ProcessOutcome, listening: Listening) -> str | None:
    """What is wrong with what came through the record pipe."""
    if outcome.record_overflow:
        return "The record is larger than any record can be"
    if listening.garbage is not None:
        return listening.garbage
    if outcome.unfinished:
        return "The record breaks off in the middle"
    if len(listening.records) > 1:
        return "The worker sent more than one record"
    return None


def _machine(spec: TrialSpec, listening: Listening, device: DeviceFacts) -> Machine:
    if listening.facts is not None:
        facts = dict(listening.facts.machine)
    else:
        facts = machine_facts("cpu", spec.threads) | {"device": spec.device.split(":")[0]}
        if facts["device"] != "cpu":
            facts |= {"device_name": device.name or "unknown", "device_count": 1}
            facts["device_memory_bytes"] = device.memory_bytes
    if facts["device"] == "cuda":
        facts |= {
            "device_uuid": device.uuid or facts.get("device_uuid"),
            "power_limit_w": device.power_limit_w,
        }
    return Machine(**facts)


def _build(listening: Listening, device: DeviceFacts, compiler: str | None, label: str | None) -> Build:
    facts = {"torch": "unknown"} if listening.facts is None else dict(listening.facts.build)
    return Build(**facts | {"driver": device.driver, "compiler": compiler, "label": label})


def _cold_start(record: Record, outcome: ProcessOutcome) -> dict[str, Any]:
    """The worker's phases, and what only the parent knows: when the process was spawned."""
    cold = dict(record.cold_start)
    spawned = outcome.spawned_ns
    if spawned is not None and record.entered_ns is not None:
        cold["interpreter_ns"] = max(0, record.entered_ns - spawned)
    if spawned is not None and record.first_result_ns is not None:
        cold["total_ns"] = max(0, record.first_result_ns - spawned)
    return cold


def _worker_failure(failure: WorkerFailure, outcome: ProcessOutcome, device: str) -> Failure:
    kind, log = FailureKind(failure.kind), log_tail(outcome)
    message = with_advice(kind, scrub(failure.message), device)
    if kind in (FailureKind.COMPILE_ERROR, FailureKind.MISSING_COMPILER):
        message = with_cause(message, log or "")
    return Failure(
        kind=kind,
        phase=failure.phase,
        message=message,
        log_tail=log,
        exit_code=outcome.exit_code,
        signal=outcome.signal,
    )


def assemble(
    spec: TrialSpec,
    outcome: ProcessOutcome,
    listening: Listening,
    *,
    started_at: datetime,
    ended_at: datetime,
    oom_killed: bool,
    device: DeviceFacts,
    compiler: str | None,
    code: Code | None = None,
    untracked: Collection[str] = (),
    clock_set_back: timedelta = timedelta(),
) -> Trial:
    """The record of one process. Whatever the worker sent, this returns a valid trial.

    `code` is the state of the workload's work tree before the process began, `untracked` what lay in it that
    git did not follow (`WorkTree.untracked`): the commit is not what was measured where that was imported.
    """
    base = _base(spec, listening, (started_at, ended_at), device, compiler)
    if clock_set_back:
        set_back_ns = clock_set_back // timedelta(microseconds=1) * 1_000
        base["host_state"] = HostState(clock_set_back_ns=set_back_ns)
    if code is not None:
        base["code"] = code
    fault = _fault(outcome, listening)
    record = listening.records[0] if listening.records and fault is None and outcome.stopped is None else None
    problem = fault
    if record is not None:
        try:
            return _measured(base, record, outcome, listening, untracked)
        except ValidationError as error:
            problem = f"The record is not one: {first_problem(error, 'the whole record')}"
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            problem = f"The record is not one: {type(error).__name__}: {error}"
    failure = failure_of(Ending(outcome, listening.phase, spec.timeout_s, oom_killed, problem))
    if listening.partial is not None and problem is None:
        with contextlib.suppress(ValidationError, AttributeError, KeyError, TypeError, ValueError):
            return _measured(base, listening.partial, outcome, listening, untracked, ended=failure)
    return Trial(**base, status=Status.FAILED, failure=failure)


def unmeasured(spec: TrialSpec, failure: Failure, *, at: datetime, device: DeviceFacts) -> Trial:
    """The record of a trial that was never begun, and why."""
    listening = Listening(lambda _phase: None, DeviceWatch("cpu"))
    return Trial(**_base(spec, listening, (at, at), device, None), status=Status.FAILED, failure=failure)


def _base(
    spec: TrialSpec,
    listening: Listening,
    times: tuple[datetime, datetime],
    device: DeviceFacts,
    compiler: str | None,
) -> dict[str, Any]:
    """What a record has however its process ended; `times` are its start and end."""
    return {
        "trial_id": spec.trial_id,
        "run_id": spec.run_id,
        "suite": spec.suite,
        "label": spec.label,
        "started_at": times[0],
        "ended_at": times[1],
        "source": Source(kind=SourceKind.MEASURED, name=f"compilewatch {__version__}"),
        "workload": spec.workload.record(),
        "strategy": spec.strategy,
        "machine": _machine(spec, listening, device),
        "build": _build(listening, device, compiler, spec.label),
    }


def _measured(
    base: dict[str, Any],
    record: Record,
    outcome: ProcessOutcome,
    listening: Listening,
    untracked: Collection[str],
    *,
    ended: Failure | None = None,
) -> Trial:
    """The trial of a record; `ended` is why its process did not live to send it whole."""
    sent = {name: value for name, value in vars(record).items() if value is not None}
    if record.task is not None:
        base = base | {"workload": base["workload"].model_copy(update={"task": Task(record.task)})}
    parts = {name: value for name, value in sent.items() if name in Trial.model_fields}
    parts["cold_start"] = _cold_start(record, outcome)
    parts["device_state"] = listening.watch.state()
    code: Code | None = base.get("code")
    if (marked := base.get("host_state")) is not None:
        parts["host_state"] = parts.get("host_state", {}) | marked.model_dump(exclude_defaults=True)
    if code is not None and record.source_hash is not None:
        dirty = code.dirty or (code.dirty is not None and _holds(untracked, record.source_files or ()))
        parts["code"] = Code(commit=code.commit, dirty=dirty, source_hash=record.source_hash)
    if "timing" in parts:
        # With what NVML said after the blocks of each side.
        timing, watch = parts["timing"], listening.watch
        sides = {side: timing[side] | watch.of_side(side) for side in ("side", "control") if timing.get(side)}
        parts["timing"] = timing | sides
    parts["status"] = Status.OK
    if ended is not None:
        parts |= {"status": Status.FAILED, "failure": ended}
    elif record.status != Status.OK:
        if record.failure is None:
            raise ValueError("it neither succeeded nor says what failed")
        parts |= {
            "status": Status.FAILED,
            "failure": _worker_failure(record.failure, outcome, base["machine"].device),
        }
    return Trial(**(base | parts))


def _holds(untracked: Collection[str], files: Collection[str]) -> bool:
    """Whether one of `files` is among the `untracked` files or lies in one of the folders."""
    folders = tuple(each for each in untracked if each.endswith("/"))
    return any(file in untracked or file.startswith(folders) for file in files)
