"""Why a measured process left no usable record: exit status, evidence and log -> a `Failure`."""

from __future__ import annotations

import signal as signals
from dataclasses import dataclass
from pathlib import Path

from db.records import Failure, FailureKind
from runner.process import Outcome
from runner.scrub import scrub

_LOG_LIMIT = 65_536
_VMSTAT = Path("/proc/vmstat")
_CGROUP_EVENTS = Path("/sys/fs/cgroup/memory.events")
_OUT_OF_MEMORY_TEXT = ("can't allocate memory", "std::bad_alloc", "MemoryError", "CUDA out of memory")
_DEVICE_TEXT = ("CUDA error", "HIP error", "Xid")
_DISK_TEXT = ("No space left on device",)


def oom_kills() -> int:
    """Processes the kernel has killed for memory: on this host, and in this container."""
    count = 0
    for path in (_VMSTAT, _CGROUP_EVENTS):
        try:
            lines = path.read_text().splitlines()
        except OSError:
            continue
        count += sum(int(line.split()[1]) for line in lines if line.startswith("oom_kill "))
    return count


@dataclass(frozen=True)
class Ending:
    """What is known about the end of one process."""

    outcome: Outcome
    phase: str | None
    timeout_s: float
    oom_killed: bool
    garbage: str | None
    """What was wrong on the record pipe, if anything was."""


def log_tail(outcome: Outcome) -> str | None:
    """The last of what the process printed, safe to store."""
    text = scrub(outcome.log_tail.decode("utf-8", errors="replace"))
    return text[-_LOG_LIMIT:] or None


def _killed_by(number: int) -> str:
    try:
        return signals.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _kind_and_message(ending: Ending, log: str) -> tuple[FailureKind, str]:
    outcome, where = ending.outcome, f" during {ending.phase}" if ending.phase else ""
    if outcome.stopped == "timeout":
        return FailureKind.TIMEOUT, f"No result within {ending.timeout_s:g} s; ended{where}."
    if outcome.stopped == "cancelled":
        return FailureKind.CANCELLED, f"Cancelled{where}."
    if outcome.guard_lost:
        return FailureKind.CRASH, f"The trial's guard process was killed{where}."
    if outcome.signal is not None:
        name = _killed_by(outcome.signal)
        if ending.oom_killed and outcome.signal == signals.SIGKILL:
            return FailureKind.OUT_OF_MEMORY, f"The kernel killed the process for memory{where}."
        if any(text in log for text in _OUT_OF_MEMORY_TEXT):
            return FailureKind.OUT_OF_MEMORY, f"Out of memory{where}: the process died of {name}."
        if any(text in log for text in _DISK_TEXT):
            return FailureKind.DISK_FULL, f"The disk is full; the process died of {name}{where}."
        if any(text in log for text in _DEVICE_TEXT):
            return FailureKind.DEVICE_LOST, f"The device failed and the process died of {name}{where}."
        return FailureKind.CRASH, f"The process died of {name}{where}."
    if ending.garbage is not None:
        return FailureKind.BAD_RECORD, f"{ending.garbage}{where}."
    if outcome.exit_code == 0:
        return FailureKind.BAD_RECORD, f"The process ended without a record{where}."
    if any(text in log for text in _OUT_OF_MEMORY_TEXT):
        return FailureKind.OUT_OF_MEMORY, f"Out of memory{where}: exit code {outcome.exit_code}."
    return FailureKind.CRASH, f"The process ended with exit code {outcome.exit_code}{where}."


def failure_of(ending: Ending) -> Failure:
    """The `Failure` of a process that left no usable record."""
    log = log_tail(ending.outcome)
    kind, message = _kind_and_message(ending, log or "")
    return Failure(
        kind=kind,
        phase=ending.phase,
        message=message,
        log_tail=log,
        exit_code=ending.outcome.exit_code,
        signal=ending.outcome.signal,
    )
