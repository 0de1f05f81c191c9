"""Where the time of the first compiled call went: exclusive times of nested regions, adding up to the
whole."""

from __future__ import annotations

import threading
from collections.abc import Callable

PHASES = (
    "dynamo",
    "aot_autograd",
    "inductor",
    "kernel_compile",
    "isa_probe",
    "autotune",
    "backward",
    "cudagraph_capture",
)

# Names of the regions torch times (torch/_dynamo/utils.py, `dynamo_timed`), to the phase they open. Whatever
# runs inside a region and opens no phase of its own belongs to the region. "isa_probe" and
# "precompiled_header" come from `listen_to_events`.
_PHASE_OF = {
    "entire_frame_compile": "dynamo",
    "_compile.compile_inner": "dynamo",
    "backend_compile": "aot_autograd",
    "inductor_compile": "inductor",
    "compile_fx_inner": "inductor",
    "async_compile.wait": "kernel_compile",
    "async_compile.precompile": "kernel_compile",
    "compile_file": "kernel_compile",
    "precompiled_header": "kernel_compile",
    "isa_probe": "isa_probe",
    "cudagraphify": "cudagraph_capture",
    "CUDAGraphNode.record": "cudagraph_capture",
}
_AUTOTUNE_MARKS = ("benchmark_all_configs", "autotun", "AlgorithmSelectorCache", "coordinate_descent")
_BACKWARD = "entire_backward_compile"


def phase_of(event: str) -> str | None:
    """The phase a timed region opens, or None when it belongs to what surrounds it."""
    if event == _BACKWARD:
        return "backward"
    if any(mark in event for mark in _AUTOTUNE_MARKS):
        return "autotune"
    if "cudagraph" in event.lower():
        return "cudagraph_capture"
    return _PHASE_OF.get(event)


class PhaseClock:
    """Splits the time of one thread among the phases, each instant to the innermost open one.

    A backward compilation is one phase whole, whatever opens inside it, since the forward has the same parts.
    Other threads are not listened to (the work of Inductor's pool overlaps and is no wall time), except one
    that compiles a backward: on a GPU autograd calls it from a thread of its own while this one waits.
    """

    def __init__(self, clock: Callable[[], int]) -> None:
        self._clock = clock
        self._threads = {threading.get_ident()}
        self._stack: list[tuple[str, str]] = []
        self._since = clock()
        self.spent_ns: dict[str, int] = {}

    def _settle(self) -> None:
        now = self._clock()
        if self._stack:
            phase = self._stack[-1][1]
            self.spent_ns[phase] = self.spent_ns.get(phase, 0) + now - self._since
        self._since = now

    def begin(self, event: str) -> None:
        """A region opens; unknown ones continue the phase around them, outside of all they are `other`."""
        if event == _BACKWARD:
            self._threads.add(threading.get_ident())
        if threading.get_ident() not in self._threads:
            return
        self._settle()
        around = self._stack[-1][1] if self._stack else "other"
        phase = around if around == "backward" else phase_of(event) or around
        self._stack.append((event, phase))

    def end(self, event: str) -> None:
        """The innermost open region of this name closes, and with it what an exception left open inside."""
        if threading.get_ident() not in self._threads:
            return
        self._settle()
        for depth in reversed(range(len(self._stack))):
            if self._stack[depth][0] == event:
                del self._stack[depth:]
                return


def both(first: Callable[[str], None], second: Callable[[str], None]) -> Callable[[str], None]:
    """One listener of timed regions that tells two."""

    def listener(event: str) -> None:
        first(event)
        second(event)

    return listener


def with_remainder(spent_ns: dict[str, int], first_call_ns: int) -> dict[str, int | None]:
    """`phases_ns` of the record: the phases that were seen, and `other` as what is left of the call.

    A phase that was not seen is None: on a cache hit most do not run, and which did is not always told.
    """
    phases: dict[str, int | None] = {phase: spent_ns.get(phase) for phase in PHASES}
    phases["other"] = first_call_ns - sum(value for value in phases.values() if value is not None)
    return phases


def from_time_spent(spent: dict[str, int], wait_ns: int | None, first_call_ns: int) -> dict[str, int | None]:
    """Fallback where single regions cannot be heard: differences of torch's cumulative times.

    `inductor_compile` includes the backward's and `backend_compile` does not, so with a backward the parts of
    the forward cannot be told apart and only `dynamo` and `backward` are given.
    """
    phases: dict[str, int] = {}
    frame, backend = spent.get("entire_frame_compile"), spent.get("backend_compile")
    inductor, backward = spent.get("inductor_compile"), spent.get("entire_backward_compile")
    if frame is not None and backend is not None:
        phases["dynamo"] = frame - backend
    if backward is not None:
        phases["backward"] = backward
    elif backend is not None and inductor is not None:
        phases["aot_autograd"] = backend - inductor
        phases["inductor"] = inductor - (wait_ns or 0)
        if wait_ns is not None:
            phases["kernel_compile"] = wait_ns
    if any(value < 0 for value in phases.values()) or sum(phases.values()) > first_call_ns:
        phases = {}
    return with_remainder(phases, first_call_ns)
