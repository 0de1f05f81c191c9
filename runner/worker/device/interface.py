"""What timing needs of a device with a queue of its own. `cuda_device` is one; the tests simulate another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

Step = Callable[[], Any]


class Gate(Protocol):
    """Holds the device's queue, so that the host can enqueue a whole step before the device begins it."""

    kind: str
    """`spin_kernel` or `stream_wait`."""

    def close(self, hold_ns: int) -> None:
        """What is enqueued from now on waits until `open`, and about `hold_ns` at most, whatever the host
        does meanwhile. Raises RuntimeError or OSError where the device has no such gate.
        """

    def open(self) -> None:
        """Let the device go on, as far as this gate can be opened before its time."""


@dataclass(frozen=True)
class Observed:
    """What the device itself noted of some steps."""

    busy_ns: list[int]
    """Union of the intervals of all its work, step by step, in nanoseconds."""
    launches: float | None
    """Calls of the host that put work into the queue, a step."""
    graph_launches: int | None
    """Of them those that launch a whole graph, in one step."""
    synchronises: bool | None
    """Whether the host waits for the device inside a step."""
    streams: int | None
    """Queues that the steps' work ran in."""


class Device(Protocol):
    """One device. Times are nanoseconds of the host's clock, but for `elapsed_ns`, which is the device's."""

    def now_ns(self) -> int:
        """The host's clock."""

    def synchronize(self) -> None:
        """Wait until the device has done everything."""

    def event(self) -> Any:
        """A new mark of a place in the queue, not recorded yet."""

    def record(self, event: Any) -> None:
        """Put `event` into the queue."""

    def is_reached(self, event: Any) -> bool:
        """Whether the device has come to the place where `event` was recorded last."""

    def elapsed_ns(self, start: Any, end: Any) -> int:
        """Time between two events that were reached."""

    def flush(self) -> None:
        """Put into the queue what overwrites the cache, where that is asked for."""

    def gates(self) -> Sequence[Gate]:
        """Gates to try, the preferred one first."""

    def observe(self, step: Step, count: int) -> Observed | None:
        """Watch `count` steps with the device's own tracing; None where it has none. Slows the process for
        good, so nothing may be timed afterwards.
        """

    def release(self) -> None:
        """Give back the memory that `flush` needs."""
