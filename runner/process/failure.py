"""Why a measured process left no usable record: exit status, evidence and log -> a `Failure`. What the
process reported of an exception is worded in `record`.
"""

from __future__ import annotations

import re
import signal as signals
from dataclasses import dataclass
from pathlib import Path

from compilewatch.db.records.trial import Failure, FailureKind
from compilewatch.db.units import size, words
from compilewatch.runner.config.scrub import scrub
from compilewatch.runner.process.pipe import ProcessOutcome
from compilewatch.runner.worker.step.host import memory_limit_bytes

_LOG_LIMIT = 65_536
_CAUSE_LIMIT = 300
_CAUSE = re.compile(
    r"^.*(?:(?:^|[\s:])(?:fatal )?error: |\bfatal\s*: |: cannot find |command not found|: not found$).*$",
    re.MULTILINE,
)
_DIRECTORIES = re.compile(r"^[^\s:]*/")
_VMSTAT = Path("/proc/vmstat")
_CGROUP_EVENTS = Path("/sys/fs/cgroup/memory.events")
_EVIDENCE = {
    FailureKind.OUT_OF_MEMORY: (
        "can't allocate memory",
        "std::bad_alloc",
        "MemoryError",
        "CUDA out of memory",
    ),
    FailureKind.DISK_FULL: ("No space left on device",),
    FailureKind.DEVICE_LOST: ("CUDA error", "HIP error"),
}


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

    outcome: ProcessOutcome
    phase: str | None
    timeout_s: float
    oom_killed: bool
    garbage: str | None
    """What was wrong on the record pipe, if anything was."""


def log_tail(outcome: ProcessOutcome) -> str | None:
    """The last of what the process printed, safe to store."""
    text = scrub(outcome.log_tail.decode("utf-8", errors="replace"))
    return text[-_LOG_LIMIT:] or None


def with_cause(message: str, log: str) -> str:
    """`message` of a failed compilation and, where it lacks that, the first line of `log` that names a cause:
    a compiler's or linker's error, a command or header that is missing. One line.
    """
    match = _CAUSE.search(log)
    if match is None:
        return message
    # Generated files lie in directories with long names of no use to anybody.
    cause = " ".join(_DIRECTORIES.sub("", match[0].strip()).split())[:_CAUSE_LIMIT]
    return message if cause in message else f"{message.rstrip('.')}: {cause}"


def _signal_name(number: int) -> str:
    try:
        return signals.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _kind_and_message(ending: Ending, log: str) -> tuple[FailureKind, str]:
    outcome = ending.outcome
    if outcome.stopped == "timeout":
        return FailureKind.TIMEOUT, f"No result within {ending.timeout_s:g} s"
    if outcome.stopped == "cancelled":
        return FailureKind.CANCELLED, "Cancelled"
    if outcome.guard_lost:
        return FailureKind.CRASH, "The guard process of the trial was killed"
    if outcome.signal is not None:
        # SIGKILL is the kernel's out-of-memory killer only where the kernel counted one meanwhile.
        if ending.oom_killed and outcome.signal == signals.SIGKILL:
            return FailureKind.OUT_OF_MEMORY, "The kernel killed the process for memory"
        ended = f"The process died of {_signal_name(outcome.signal)}"
    elif ending.garbage is not None or outcome.exit_code == 0:
        return FailureKind.BAD_RECORD, ending.garbage or "The process ended without a record"
    else:
        ended = f"The process ended with exit code {outcome.exit_code}"
    return _kind_by_log(log), ended


def _kind_by_log(log: str) -> FailureKind:
    """What the last lines give away about a death that left no record."""
    for kind, texts in _EVIDENCE.items():
        if any(text in log for text in texts):
            return kind
    return FailureKind.CRASH


def with_advice(kind: FailureKind, message: str, device: str = "cpu") -> str:
    """`message` and, where something can be set, what."""
    advice = ""
    if kind is FailureKind.TIMEOUT:
        advice = "Raise `timeout_s` in [run], or set COMPILEWATCH_RUN__TIMEOUT_S."
    elif kind is FailureKind.OUT_OF_MEMORY:
        limit = memory_limit_bytes() if device == "cpu" else None
        of_host = f" than the {size(limit)} here" if limit else ""
        advice = f"Take a smaller `batch_size` or model, or more memory{of_host}."
    return f"{message.rstrip('.')}. {advice}" if advice else message


def failure_of(ending: Ending) -> Failure:
    """The `Failure` of a process that left no usable record."""
    log = log_tail(ending.outcome)
    kind, message = _kind_and_message(ending, log or "")
    where = f" during {words(ending.phase)}" if ending.phase else ""
    return Failure(
        kind=kind,
        phase=ending.phase,
        message=with_advice(kind, f"{message}{where}."),
        log_tail=log,
        exit_code=ending.outcome.exit_code,
        signal=ending.outcome.signal,
    )
