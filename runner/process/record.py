"""From a worker's lines and its end to one `Trial`: validated, or failed with the reason."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from pydantic import ValidationError

from db import __version__
from db.records.trial import (
    CONTROL_TIMES,
    DEVICE_TIMES,
    SCHEMAS,
    Build,
    Failure,
    FailureKind,
    Machine,
    Source,
    SourceKind,
    Status,
    Strategy,
    Trial,
    Workload,
)
from db.records.validation import first_problem
from runner.device.state import DeviceFacts, DeviceWatch
from runner.process.failure import Ending, failure_of, log_tail, scrub, with_cause
from runner.process.pipe import ProcessOutcome
from runner.worker.channel import SLOWED
from runner.worker.host import machine_facts

_RECORD_PARTS = (
    "warmup_ns",
    "samples_ns",
    "control_warmup_ns",
    "control_samples_ns",
    "host_samples_ns",
    "control_host_samples_ns",
    "timing",
    *DEVICE_TIMES,
    *CONTROL_TIMES,
    "sampling",
    "memory",
    "compiler",
    "numerics",
    "host_state",
    "stream",
)


@dataclass
class Listening:
    """Hears a worker's lines as they come: phases, facts, pauses, the record; keeps what is not one."""

    on_phase: Callable[[str], None]
    watch: DeviceWatch
    phase: str | None = None
    facts: dict[str, Any] | None = None
    records: list[dict[str, Any]] = field(default_factory=list)
    garbage: str | None = None

    def succeeded(self) -> bool:
        """Whether the worker reported success and nothing else came through its pipe."""
        return self.garbage is None and [record.get("status") for record in self.records] == [Status.OK]

    def hear(self, line: bytes) -> bytes | None:
        """Take in one line; the answer goes to the worker's standard input."""
        try:
            content = json.loads(line)
            mark = content["mark"]
        except (ValueError, TypeError, KeyError, RecursionError):
            self.garbage = self.garbage or "The record pipe carried something that is no mark of the worker"
            return None
        if mark == "phase":
            self.phase = str(content.get("phase"))
            self.on_phase(self.phase)
        elif mark == "facts" and _are_facts(content):
            self.facts = content
        elif mark == "facts":
            self.garbage = self.garbage or "The worker said of its machine and build what cannot be"
        elif mark == "pause":
            return SLOWED if self.watch.sample(str(content.get("side", ""))) else b"\n"
        elif mark == "record" and isinstance(content.get("record"), dict):
            self.records.append(content["record"])
        return None


def _are_facts(content: Mapping[str, Any]) -> bool:
    try:
        Machine(**content["machine"])
        Build(**content["build"])
    except (ValidationError, KeyError, TypeError):
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


def _machine(spec: Mapping[str, Any], listening: Listening, device: DeviceFacts) -> Machine:
    if listening.facts is not None:
        facts = dict(listening.facts["machine"])
    else:
        facts = machine_facts("cpu", spec["threads"]) | {"device": spec["device"].split(":")[0]}
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
    facts = {"torch": "unknown"} if listening.facts is None else dict(listening.facts["build"])
    return Build(**facts | {"driver": device.driver, "compiler": compiler, "label": label})


def _cold_start(record: dict[str, Any], outcome: ProcessOutcome) -> dict[str, Any]:
    """The worker's phases, and what only the parent knows: when the process was spawned."""
    cold = dict(record.get("cold_start") or {})
    spawned = outcome.spawned_ns
    if spawned is not None and "entered_ns" in record:
        cold["interpreter_ns"] = max(0, record["entered_ns"] - spawned)
    if spawned is not None and "first_result_ns" in record:
        cold["total_ns"] = max(0, record["first_result_ns"] - spawned)
    return cold


def _timing(told: dict[str, Any], watch: DeviceWatch) -> dict[str, Any]:
    """The worker's `timing`, and what NVML said after the blocks of each side."""
    sides = {name: told[name] | watch.of_side(name) for name in ("side", "control") if told.get(name)}
    return told | sides


def _worker_failure(record: dict[str, Any], outcome: ProcessOutcome) -> Failure:
    told = record["failure"]
    kind, message, log = FailureKind(told["kind"]), scrub(told["message"]), log_tail(outcome)
    if kind in (FailureKind.COMPILE_ERROR, FailureKind.MISSING_COMPILER):
        message = with_cause(message, log or "")
    return Failure(
        kind=kind,
        phase=told["phase"],
        message=message,
        log_tail=log,
        exit_code=outcome.exit_code,
        signal=outcome.signal,
    )


def assemble(
    spec: Mapping[str, Any],
    outcome: ProcessOutcome,
    listening: Listening,
    *,
    started_at: datetime,
    ended_at: datetime,
    oom_killed: bool,
    device: DeviceFacts,
    compiler: str | None,
) -> Trial:
    """The record of one process. Whatever the worker sent, this returns a valid trial."""
    base = _base(spec, listening, (started_at, ended_at), device, compiler)
    fault = _fault(outcome, listening)
    record = listening.records[0] if listening.records and fault is None and outcome.stopped is None else None
    problem = fault
    if record is not None:
        try:
            return _measured(base, record, outcome, listening)
        except (ValidationError, KeyError, TypeError, ValueError) as error:
            problem = f"The record is not one: {_first_fault(error)}"
    ending = Ending(outcome, listening.phase, float(spec["timeout_s"]), oom_killed, problem)
    return Trial(**base, status=Status.FAILED, failure=failure_of(ending))


def unmeasured(spec: Mapping[str, Any], failure: Failure, *, at: datetime, device: DeviceFacts) -> Trial:
    """The record of a trial that was never begun, and why."""
    listening = Listening(lambda _phase: None, DeviceWatch("cpu"))
    return Trial(**_base(spec, listening, (at, at), device, None), status=Status.FAILED, failure=failure)


def _base(
    spec: Mapping[str, Any],
    listening: Listening,
    times: tuple[datetime, datetime],
    device: DeviceFacts,
    compiler: str | None,
) -> dict[str, Any]:
    """What a record has however its process ended; `times` are its start and end."""
    return {
        "trial_id": spec["trial_id"],
        "run_id": spec["run_id"],
        "suite": spec.get("suite"),
        "label": spec.get("label"),
        "started_at": times[0],
        "ended_at": times[1],
        "source": Source(kind=SourceKind.MEASURED, name=f"compilewatch {__version__}"),
        "workload": _part(Workload, spec["workload"]),
        "strategy": _part(Strategy, spec["strategy"]),
        "machine": _machine(spec, listening, device),
        "build": _build(listening, device, compiler, spec.get("label")),
    }


def _measured(
    base: dict[str, Any], record: dict[str, Any], outcome: ProcessOutcome, listening: Listening
) -> Trial:
    parts = {name: record[name] for name in _RECORD_PARTS if record.get(name) is not None}
    parts["cold_start"] = _cold_start(record, outcome)
    parts["device_state"] = listening.watch.state()
    # A worker that says how it timed its steps writes the second version.
    parts["schema"] = SCHEMAS[2 if "timing" in parts else 1]
    if "timing" in parts:
        parts["timing"] = _timing(parts["timing"], listening.watch)
    if record["status"] == Status.OK:
        return Trial(**base, **parts, status=Status.OK)
    return Trial(**base, **parts, status=Status.FAILED, failure=_worker_failure(record, outcome))


def _part(kind: type[Workload] | type[Strategy], content: Mapping[str, Any]) -> Workload | Strategy:
    """The record's part of a specification, without what only the worker needs."""
    return kind(**{name: value for name, value in content.items() if name in kind.model_fields})


def _first_fault(error: Exception) -> str:
    if isinstance(error, ValidationError):
        return first_problem(error, "the whole record")
    return f"{type(error).__name__}: {error}"
