"""What the host was doing while a block of samples was taken: one that was disturbed may not count."""

from __future__ import annotations

import ctypes
import hashlib
import os
import platform
import statistics
import struct
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# With one other busy job a two-thread step took 93 times as long; such blocks stall more than 5 % of the time
# or keep the measuring thread off its core. Both limits are far from what a quiet host shows (0.01 and 0.99).
MAX_STALL_FRACTION = 0.05
MIN_CPU_OVER_WALL = 0.9
# Below this a scheduler tick (1 to 4 ms) weighs more than what is judged.
_JUDGEABLE_NS = 5_000_000
_CANARY = bytes(1 << 20)


def cpu_stall_ns() -> int | None:
    """Time in which some task waited for a CPU, since boot (Linux pressure stall information), else None."""
    try:
        line = Path("/proc/pressure/cpu").read_text().splitlines()[0]
    except (OSError, IndexError):
        return None
    return int(line.rpartition("total=")[2]) * 1000


# perf_event_open(2), linux/perf_event.h: instructions in user mode of this thread and of every thread and
# process that comes of it. Read: the count, and how long it was enabled and really counted.
_PERF_EVENT_OPEN = {"x86_64": 298, "aarch64": 241}
_ATTRIBUTE_BYTES = 128
_INSTRUCTIONS = struct.pack("<IIQQQQQ", 0, _ATTRIBUTE_BYTES, 1, 0, 0, 0b11, 1 << 1 | 1 << 5 | 1 << 6)
_READING = struct.Struct("<QQQ")


class InstructionCounter:
    """Counts from now on, until `close`. Open it before threads and processes are started.

    Raises OSError where the kernel, a container or a virtual machine has no such counter.
    """

    def __init__(self) -> None:
        number = _PERF_EVENT_OPEN.get(platform.machine())
        if number is None:
            raise OSError(f"it is not known how to ask for them on {platform.machine()}")
        libc = ctypes.CDLL(None, use_errno=True)
        attribute = ctypes.create_string_buffer(_INSTRUCTIONS, _ATTRIBUTE_BYTES)
        # This thread, on every CPU, in no group; closed where a program is executed.
        self._descriptor: int = libc.syscall(number, attribute, 0, -1, -1, 1 << 3)
        if self._descriptor < 0:
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code))

    def read(self) -> int | None:
        """Instructions so far; None where the processor's counters were shared, so that some were missed."""
        count, enabled_ns, running_ns = _READING.unpack(os.read(self._descriptor, _READING.size))
        return int(count) if running_ns == enabled_ns else None

    def close(self) -> None:
        """Stop counting, so that it costs what comes next nothing."""
        os.close(self._descriptor)


def canary_ns() -> int:
    """Time of one SHA-256 over 1 MiB: the speed of this host now, independent of torch and its version."""
    start = time.perf_counter_ns()
    hashlib.sha256(_CANARY).digest()
    return time.perf_counter_ns() - start


@dataclass(frozen=True)
class Block:
    """Evidence of one timed block; fractions of its wall time."""

    wall_ns: int
    stall_fraction: float | None
    thread_over_wall: float
    process_over_wall: float

    def may_count(self, *, cpu_bound: bool) -> bool:
        """Whether the host left the block alone. Only a CPU-bound step has to keep its thread busy."""
        if self.stall_fraction is not None and self.stall_fraction > MAX_STALL_FRACTION:
            return False
        return not cpu_bound or self.wall_ns < _JUDGEABLE_NS or self.thread_over_wall >= MIN_CPU_OVER_WALL


class BlockWatch:
    """Reads the clocks around a block: `begin()`, the samples, `end()`."""

    def begin(self) -> None:
        """Read the clocks before the samples."""
        self._stall = cpu_stall_ns()
        self._process = time.process_time_ns()
        self._thread = time.thread_time_ns()
        self._wall = time.perf_counter_ns()

    def end(self) -> Block:
        """What went on since `begin`."""
        wall = max(1, time.perf_counter_ns() - self._wall)
        thread, process = time.thread_time_ns() - self._thread, time.process_time_ns() - self._process
        stall = cpu_stall_ns()
        waited = None if stall is None or self._stall is None else min(1.0, (stall - self._stall) / wall)
        return Block(wall, waited, thread / wall, process / wall)


def host_state(blocks: list[Block], rejected: int, canaries: list[int]) -> dict[str, Any]:
    """`HostState` of the record: medians over the blocks, weighted by nothing, since blocks are alike."""
    stalls = [block.stall_fraction for block in blocks if block.stall_fraction is not None]
    return {
        "cpu_stall_fraction": statistics.median(stalls) if stalls else None,
        "cpu_over_wall": statistics.median(block.process_over_wall for block in blocks) if blocks else None,
        "canary_ns": canaries,
        "blocks": len(blocks),
        "blocks_rejected": rejected,
    }
