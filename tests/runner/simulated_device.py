"""A GPU without one: a bounded queue on a virtual clock, launches that cost the host time, and gates.

It keeps the rules of CUDA that timing meets: the host runs ahead of the device until the queue is full, then
waits for a place; the device does one thing after another and idles while the queue is empty; an event is
reached when everything before it is done. What a step truly costs the device is known here, so tests can say
how far a timer is off.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

from compilewatch.runner.worker.device.interface import Session

US = 1_000
SYNCHRONISE_NS = 8 * US
RECORD_NS = 1 * US
ARRIVAL_NS = 2 * US


@dataclass
class Mark:
    """An event: where it stands in the queue."""

    entry: Entry | None = None


@dataclass
class Entry:
    """Something in the queue: when the host put it there, how long it takes, when a gate opens."""

    queued_ns: int
    takes_ns: int
    opens_ns: int | None = None
    done_ns: int = 0


@dataclass
class SimulatedDevice:
    """`Device` on a virtual clock in nanoseconds.

    `launch_ns` a launch costs the host, times `host_mode` (a process may be in a slow one) and a noise of
    `host_noise`. `slowdown` of the device may change with the time, as where it is throttled.
    """

    depth: int = 1000
    host_mode: float = 1.0
    host_noise: float = 0.1
    slowdown: Callable[[int], float] = lambda _now: 1.0
    has_gates: tuple[str, ...] = ("spin_kernel", "stream_wait")
    has_tracing: bool = True
    loses: Callable[[int], int] = lambda _session: 0
    """How many kernels at its start a session of tracing loses, by its number from 1."""
    session_ns: int = 0
    """What a session of tracing costs."""
    flush_ns: int = 0
    seed: int = 0
    now: int = 0
    queue: list[Entry] = field(default_factory=list)
    free_ns: int = 0
    released: int = 0
    launched: int = 0
    waited: int = 0
    worked: list[int] = field(default_factory=list)
    is_cold: bool = False
    sessions: int = 0
    is_blind: bool = False

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)

    # What the host does.

    def now_ns(self) -> int:
        self.now += 30
        return self.now

    def spend(self, ns: float) -> None:
        """Host work, as fast as the host is."""
        self.now += round(ns * self.host_mode * self._random.lognormvariate(0, self.host_noise))

    def launch(self, device_ns: float, *, host_ns: float, cold_ns: float = 0) -> None:
        """Start a kernel: the host waits where the queue is full. After a flush it takes `cold_ns` longer."""
        self.spend(host_ns)
        self.launched += 1
        noise = self._random.lognormvariate(0, 0.004)
        device_ns += cold_ns if self.is_cold else 0
        self.is_cold = False
        takes = round(device_ns * noise * self.slowdown(self.now))
        self.worked.append(takes)
        self.enqueue(Entry(self.now, takes))

    def wait(self) -> None:
        """What `.item()` inside a step does."""
        self.waited += 1
        self.synchronize()

    def enqueue(self, entry: Entry) -> None:
        """Put it into the queue, once there is a place."""
        self._forget()
        if len(self.queue) >= self.depth:
            self.now = entry.queued_ns = self.queue[-self.depth].done_ns
            self._forget()
        self._finish(entry)
        self.queue.append(entry)

    def resolve(self) -> None:
        """Reckon anew when everything in the queue is done: a gate was opened."""
        entries, self.queue = self.queue, []
        for entry in entries:
            self._finish(entry)
            self.queue.append(entry)

    def _finish(self, entry: Entry) -> None:
        free = self.queue[-1].done_ns if self.queue else self.free_ns
        begun = max(free, entry.queued_ns + ARRIVAL_NS)
        entry.done_ns = begun + entry.takes_ns if entry.opens_ns is None else max(begun, entry.opens_ns)

    def _forget(self) -> None:
        while self.queue and self.queue[0].done_ns <= self.now:
            self.free_ns = self.queue.pop(0).done_ns

    # `Device`.

    @property
    def flushes(self) -> bool:
        return self.flush_ns > 0

    def synchronize(self) -> None:
        if self.queue:
            self.now = max(self.now, self.queue[-1].done_ns)
        self.now += SYNCHRONISE_NS
        self._forget()

    def event(self) -> Mark:
        return Mark()

    def record(self, event: Mark) -> None:
        self.now += RECORD_NS
        event.entry = Entry(self.now, 0)
        self.enqueue(event.entry)

    def is_reached(self, event: Mark) -> bool:
        return event.entry is None or event.entry.done_ns <= self.now

    def elapsed_ns(self, start: Mark, end: Mark) -> int:
        assert end.entry.done_ns <= self.now
        return end.entry.done_ns - start.entry.done_ns

    def flush(self) -> None:
        if self.flushes:
            self.is_cold = True
            self.now += 3 * US
            self.enqueue(Entry(self.now, self.flush_ns))

    def gates(self) -> list[Spin | Wait]:
        return [
            {"spin_kernel": Spin, "stream_wait": Wait, "broken": Broken, "idle": Idle}[name](self)
            for name in self.has_gates
        ]

    def trace(self, step: Callable[[], object]) -> Session | None:
        """A process whose first session has no kernel sees none for good, as CUPTI of CUDA 13.0."""
        if not self.has_tracing:
            return None
        self.sessions += 1
        self.now += self.session_ns
        self.worked, launched, waited = [], self.launched, self.waited
        step()
        self.synchronize()
        self.is_blind |= self.sessions == 1 and not self.worked
        seen = [] if self.is_blind else self.worked[self.loses(self.sessions) :]
        # It waits itself, too.
        waits = self.waited - waited + 3
        return Session(sum(seen), len(seen), self.launched - launched, 0, waits, 1)

    def release(self) -> None:
        self.released += 1


class Spin:
    """Ends by itself."""

    kind = "spin_kernel"
    calibration_ns = 20 * 1000 * US

    def __init__(self, device: SimulatedDevice) -> None:
        self._device = device

    def prepare(self) -> None:
        """Is calibrated for longer than a trial of a gate may last."""
        self._device.now += self.calibration_ns

    def close(self, hold_ns: int) -> None:
        self._device.now += 5 * US
        self._device.enqueue(Entry(self._device.now, hold_ns))

    def open(self) -> None:
        return


class Wait:
    """Is opened by the host, or by a timer."""

    kind = "stream_wait"

    def __init__(self, device: SimulatedDevice) -> None:
        self._device = device
        self._entry: Entry | None = None

    def prepare(self) -> None:
        """There is nothing to prepare."""

    def close(self, hold_ns: int) -> None:
        self._device.now += 3 * US
        self._entry = Entry(self._device.now, 0, opens_ns=self._device.now + hold_ns)
        self._device.enqueue(self._entry)

    def open(self) -> None:
        assert self._entry.opens_ns is not None
        self._entry.opens_ns = min(self._entry.opens_ns, self._device.now)
        self._device.resolve()


class Broken:
    """A gate that this driver does not have."""

    kind = "broken"

    def __init__(self, device: SimulatedDevice) -> None:
        self._device = device

    def prepare(self) -> None:
        """Fails when it is used."""

    def close(self, hold_ns: int) -> None:
        raise RuntimeError("cuStreamWaitValue32 returned 801")

    def open(self) -> None:
        return


class Idle(Broken):
    """A gate that holds nothing."""

    kind = "idle"

    def close(self, hold_ns: int) -> None:
        return


@dataclass
class SimulatedStep:
    """A step of `launches` kernels of `kernel_ns` each, `launch_ns` of host time apart. `waits` where the
    host waits for the device in the middle.
    """

    device: SimulatedDevice
    launches: int
    kernel_ns: int
    launch_ns: int
    waits: bool = False
    cold_ns: int = 0
    """How much longer its first kernel takes after a flush."""

    def __call__(self) -> None:
        for number in range(self.launches):
            self.device.launch(self.kernel_ns, host_ns=self.launch_ns, cold_ns=self.cold_ns)
            if self.waits and number == self.launches // 2:
                self.device.wait()

    @property
    def true_device_ns(self) -> int:
        """What the device needs when it never waits for the host."""
        return self.launches * self.kernel_ns

    @property
    def true_issue_ns(self) -> float:
        """What the host needs to enqueue it, in this process's mode."""
        return self.launches * self.launch_ns * self.device.host_mode
