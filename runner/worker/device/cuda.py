"""A CUDA device as timing sees it: events, the tracing of the device itself, and two ways to hold a stream,
so that the host can enqueue a whole step before the device begins it.

No gate may hang: a step that waits for the device inside, or launches more than the queue takes, blocks the
host until the gate opens. The spinning kernel ends by itself. The stream wait is opened by a timer of the
system, whose thread needs nothing of Python: Inductor's static launcher keeps the interpreter's lock while it
waits for a place in the queue (torch/csrc/inductor/static_cuda_launcher.cpp), so no thread of Python could.
"""

from __future__ import annotations

import ctypes
import re
import time
from collections.abc import Sequence
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile

from compilewatch.runner.worker.device.interface import Gate, Session, Step
from compilewatch.runner.worker.step.profiling import LAUNCH, device_work, interval, on_host, union_us

_CALIBRATION_CYCLES = 2_000_000
_CALIBRATIONS = 40
_AGREEING = 1.02
"""Two calibrations in a row that are within this of each other: the clock has come up from idle."""
# cuda.h, CUstreamWaitValue_flags: goes on once the word is at least the value.
_WAIT_VALUE_GEQ = 0
_SIGEV_THREAD = 2


class SpinGate:
    """`torch.cuda._sleep`: one thread of the device counts cycles. How many make a nanosecond is measured
    once; the clock may change later, which the check of every sample finds out.
    """

    kind = "spin_kernel"

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._cycles_per_ns = 1.0

    def prepare(self) -> None:
        """Calibrate. Raises RuntimeError where the clock is not steady."""
        self._cycles_per_ns = self._calibrated()

    def close(self, hold_ns: int) -> None:
        self._sleep(round(hold_ns * self._cycles_per_ns))

    def open(self) -> None:
        """It opens by itself."""

    def _sleep(self, cycles: int) -> None:
        with torch.cuda.device(self._device):
            torch.cuda._sleep(cycles)  # type: ignore[no-untyped-call]

    def _calibrated(self) -> float:
        """Cycles in a nanosecond once two calibrations agree. Raises RuntimeError where none do."""
        self._sleep(1000)
        rates: list[float] = []
        while len(rates) < _CALIBRATIONS:
            rates.append(self._rate())
            last = rates[-2:]
            if len(last) > 1 and max(last) <= _AGREEING * min(last):
                return max(last)
        raise RuntimeError(f"a spinning kernel ran at {min(rates):.3g} to {max(rates):.3g} cycles per ns")

    def _rate(self) -> float:
        """Cycles in a nanosecond, by one spinning kernel."""
        stream = torch.cuda.current_stream(self._device)
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
        start.record(stream)
        self._sleep(_CALIBRATION_CYCLES)
        end.record(stream)
        torch.cuda.synchronize(self._device)
        return _CALIBRATION_CYCLES / max(1.0, float(start.elapsed_time(end)) * 1e6)


class StreamWaitGate:
    """`cuStreamWaitValue32` of the CUDA driver: the stream waits for a word in the host's memory, and no
    kernel runs meanwhile.
    """

    kind = "stream_wait"

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._flag: Flag | None = None

    def prepare(self) -> None:
        """Raises OSError or AttributeError without the driver's function, RuntimeError without a timer."""
        driver = ctypes.CDLL("libcuda.so.1")
        # The first version of the function needs a setting of the kernel module; the second, of CUDA 11.7,
        # does not.
        self._wait: Any = driver.cuStreamWaitValue32_v2
        self._wait.argtypes = [ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint32, ctypes.c_uint]
        self._wait.restype = ctypes.c_int
        # Pinned memory has one address on host and device (unified addressing), in the device's own context.
        with torch.cuda.device(self._device):
            memory = torch.zeros(Flag.BYTES, dtype=torch.uint8, pin_memory=True)
        self._flag = Flag(memory.data_ptr(), owner=memory)

    def close(self, hold_ns: int) -> None:
        assert self._flag is not None
        self._flag.lower(hold_ns)
        # The driver looks for the stream in the context that is current.
        with torch.cuda.device(self._device):
            stream = torch.cuda.current_stream(self._device).cuda_stream
            code = self._wait(stream, self._flag.address, 1, _WAIT_VALUE_GEQ)
        if code != 0:
            self._flag.raise_now()
            raise RuntimeError(f"cuStreamWaitValue32 returned {code}")

    def open(self) -> None:
        if self._flag is not None:
            self._flag.raise_now()


class _SignalEvent(ctypes.Structure):
    """`struct sigevent` of glibc on 64 bits: 64 bytes."""

    _fields_ = (
        ("value", ctypes.c_void_p),
        ("number", ctypes.c_int),
        ("notify", ctypes.c_int),
        ("function", ctypes.c_void_p),
        ("attributes", ctypes.c_void_p),
        ("rest", ctypes.c_byte * 32),
    )


class _TimerSpec(ctypes.Structure):
    """`struct itimerspec`: the interval, which stays 0, and when it expires first."""

    _fields_ = tuple((name, ctypes.c_long) for name in ("every_s", "every_ns", "after_s", "after_ns"))


class Flag:
    """A 32-bit word at `address` that is 0 until it is raised, by the host or by a timer of the system.

    The timer calls `sem_post`, which adds one to the word, in a thread that never runs Python. `owner` owns
    the memory: `BYTES` of it.
    """

    BYTES = 64

    def __init__(self, address: int, *, owner: object) -> None:
        self.address = address
        self._owner = owner
        self._word = ctypes.c_uint32.from_address(address)
        self._libc: Any = ctypes.CDLL(None, use_errno=True)
        post = ctypes.cast(self._libc.sem_post, ctypes.c_void_p)
        event = _SignalEvent(value=address, notify=_SIGEV_THREAD, function=post)
        self._timer = ctypes.c_void_p()
        clock = ctypes.c_int(time.CLOCK_MONOTONIC)
        if self._libc.timer_create(clock, ctypes.byref(event), ctypes.byref(self._timer)) != 0:
            raise RuntimeError(f"timer_create failed with errno {ctypes.get_errno()}")

    def lower(self, after_ns: int) -> None:
        """Set it to 0, to be raised after `after_ns` at the latest."""
        self._set_timer(0)
        self._word.value = 0
        self._set_timer(max(1, after_ns))

    def raise_now(self) -> None:
        """Raise it, and end the wait for the timer."""
        self._word.value = 1
        self._set_timer(0)

    def _set_timer(self, after_ns: int) -> None:
        spec = _TimerSpec(after_s=after_ns // 1_000_000_000, after_ns=after_ns % 1_000_000_000)
        if self._libc.timer_settime(self._timer, 0, ctypes.byref(spec), None) != 0:
            raise RuntimeError(f"timer_settime failed with errno {ctypes.get_errno()}")


_DEFAULT_L2_BYTES = 64 * 1024 * 1024
# Calls of the CUDA runtime and driver, and of HIP, in which the host waits for the device.
_WAIT = re.compile(
    r"^(cuda(Device|Stream|Event)Synchronize|cu(Ctx|Stream|Event)Synchronize|cudaMemcpy"
    r"|hip(Device|Stream|Event)Synchronize|hipMemcpy(WithStream)?)$"
)


class CudaDevice:
    """One device and its current stream.

    With `flush_l2` a buffer of twice the L2 cache's size is overwritten before each sample, as
    `triton.testing.do_bench` does: otherwise small kernels find their inputs in the cache of the last step.
    With `keeps_events` a session of tracing has all that was noted.
    """

    def __init__(self, device: torch.device, *, flush_l2: bool, keeps_events: bool = False) -> None:
        self._device = device
        self._flush_l2 = flush_l2
        self._keeps_events = keeps_events
        self._buffer: torch.Tensor | None = None

    @property
    def flushes(self) -> bool:
        return self._flush_l2

    def now_ns(self) -> int:
        return time.perf_counter_ns()

    def synchronize(self) -> None:
        torch.cuda.synchronize(self._device)

    def event(self) -> torch.cuda.Event:
        return torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]

    def record(self, event: torch.cuda.Event) -> None:
        event.record(torch.cuda.current_stream(self._device))

    def is_reached(self, event: torch.cuda.Event) -> bool:
        return bool(event.query())  # type: ignore[no-untyped-call]

    def elapsed_ns(self, start: torch.cuda.Event, end: torch.cuda.Event) -> int:
        return round(float(start.elapsed_time(end)) * 1e6)

    def flush(self) -> None:
        if not self._flush_l2:
            return
        if self._buffer is None:
            # Not before the first sample: the first call's peak memory is the workload's own.
            properties = torch.cuda.get_device_properties(self._device)
            size = getattr(properties, "L2_cache_size", 0) or _DEFAULT_L2_BYTES
            self._buffer = torch.empty(2 * int(size), dtype=torch.int8, device=self._device)
        self._buffer.zero_()

    def gates(self) -> Sequence[Gate]:
        """The spinning kernel first: it ends by itself, whatever the host does."""
        return SpinGate(self._device), StreamWaitGate(self._device)

    def trace(self, step: Step) -> Session | None:
        """By CUPTI, through torch.profiler, so that no other step's work counts for this one."""
        self.synchronize()
        # With acc_events=False torch 2.11 warns of cycles, of which there is one here.
        with profile(activities=[ProfilerActivity.CUDA], acc_events=True) as profiler:
            step()
            self.synchronize()
        events = list(profiler.events() or ())
        work = device_work(events)
        calls = [event.name for event in events if on_host(event) and LAUNCH.search(event.name)]
        return Session(
            busy_ns=round(union_us(map(interval, work)) * 1000),
            kernels=len(work),
            launches=len(calls) if calls else None,
            graph_launches=sum("GraphLaunch" in name for name in calls),
            waits=sum(on_host(event) and _WAIT.search(event.name) is not None for event in events),
            streams=len({getattr(event, "device_resource_id", 0) for event in work}),
            events=events if self._keeps_events else (),
        )

    def release(self) -> None:
        self._buffer = None
