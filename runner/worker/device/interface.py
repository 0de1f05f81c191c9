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

    def prepare(self) -> None:
        """What has to be done once, before it is closed. Raises RuntimeError, OSError or AttributeError where
        the device has no such gate.
        """

    def close(self, hold_ns: int) -> None:
        """What is enqueued from now on waits until `open`, and about `hold_ns` at most, whatever the host
        does meanwhile. Raises RuntimeError where the driver refuses.
        """

    def open(self) -> None:
        """Let the device go on, as far as this gate can be opened before its time."""


@dataclass(frozen=True)
class Session:
    """What the device itself noted while one step ran."""

    busy_ns: int
    """Union of the intervals of all its work, in nanoseconds."""
    kernels: int
    """Pieces of work: kernels, copies, fills."""
    launches: int | None
    """Calls of the host that put work into the queue; None where they were not noted."""
    graph_launches: int
    """Of them those that launch a whole graph."""
    waits: int
    """How often the host waited for the device, the tracing itself included."""
    streams: int
    """Queues that the work ran in."""
    events: Sequence[Any] = ()
    """What was noted, as torch's profiler gives it, where the device keeps that."""


class Device(Protocol):
    """One device. Times are nanoseconds of the host's clock, but for `elapsed_ns`, which is the device's."""

    @property
    def flushes(self) -> bool:
        """Whether `flush` does anything."""

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

    def trace(self, step: Step) -> Session | None:
        """Run one step under the device's own tracing; None where it has none. Slows the process for good, so
        nothing may be timed afterwards.
        """

    def release(self) -> None:
        """Give back the memory that `flush` needs."""
