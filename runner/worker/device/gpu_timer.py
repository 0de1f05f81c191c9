"""The four times of a step on a GPU: device time behind a gate, host issue time, wall time with a
synchronisation after each step, and wall time of steps in a row.

Events around a step also hold every gap in which the device waits for the host's next launch. So a step is
enqueued behind a gate, and a sample counts only if the device had not begun when the step returned. Knows
neither torch nor CUDA; `Device` is what it needs of them.
"""

from __future__ import annotations

import statistics
from collections import deque
from collections.abc import Callable
from typing import Any

from compilewatch.runner.worker.device.interface import Device, Gate, Step
from compilewatch.runner.worker.device.tracing import Observed, median_ns
from compilewatch.runner.worker.timing.timer import BlockTimes, SideTimes, Times

TRIES = 4
"""Per sample, each with a gate twice as long as the one before."""
LONGEST_HOLD_NS = 1_000_000_000
"""A step that takes the host longer to issue fills the queue long before; no gate holds it."""
FEWEST = 3
"""Verified samples without which a side's device time is taken otherwise."""
LENGTHENING = 1.2
"""What all four times may cost, over as many ungated and as many synchronised samples, block by block."""
SHARES = {"device_ns": 0.45, "unflushed_ns": 0.05, "wall_sync_ns": 0.2, "wall_pipelined_ns": 0.3}
"""Of a block's time. Device time decides what changed; the wall times vary most between processes. Without a
flush it is only compared with the pipelined wall time, which has none."""
PIPELINED_STEPS = (4, 20)
"""Fewest and most steps of a pipelined group."""
_MARGIN_NS = 30_000
_ARRIVAL_NS = 5_000
_HEADROOM = 1.2
_TRIAL_HOLD_NS = 2_000_000
_TRIALS = 3
_GIVE_UP_AFTER = 3


class GateChoice:
    """The first gate that holds this device's queue, found by trying each once it is needed."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._gate: Gate | None = None
        self._has_tried = False

    def gate(self) -> Gate | None:
        """None where none of the device's gates holds it."""
        if not self._has_tried:
            self._has_tried = True
            self._gate = next((gate for gate in self._device.gates() if self._works(gate)), None)
        return self._gate

    def _works(self, gate: Gate) -> bool:
        """Whether the device waits behind `gate`, and goes on in time. The host may fall asleep once."""
        try:
            gate.prepare()
            return sum(self._holds(gate) for _ in range(_TRIALS)) > _TRIALS // 2
        except (RuntimeError, OSError, AttributeError):
            return False

    def _holds(self, gate: Gate) -> bool:
        device, event = self._device, self._device.event()
        device.synchronize()
        began = device.now_ns()
        gate.close(_TRIAL_HOLD_NS)
        try:
            device.record(event)
            _let_pass(device, _TRIAL_HOLD_NS // 10)
            was_held = not device.is_reached(event)
        finally:
            gate.open()
        device.synchronize()
        return was_held and device.now_ns() - began < 5 * _TRIAL_HOLD_NS


def _let_pass(device: Device, ns: int) -> None:
    """Without giving up the core, whose return may take longer than a gate holds."""
    until = device.now_ns() + ns
    while device.now_ns() < until:
        pass


class GpuTimer:
    """Times one side. Each of the four times gets a share of a block's time, and what a share does not pay
    for now is paid for in a later block.
    """

    def __init__(self, device: Device, choice: GateChoice) -> None:
        self._device = device
        self._choice = choice
        self._gate: Gate | None = None
        self._start, self._end = device.event(), device.event()
        self._issued: deque[int] = deque(maxlen=8)
        self._credit = dict.fromkeys(SHARES, 0.0)
        self._cost = dict.fromkeys(SHARES, 0.0)
        self._budget = 0.0
        self._pipelined_steps = PIPELINED_STEPS[0]
        self._samples = self._verified = self._retries = 0
        self._failed_in_a_row = 0

    def once(self, step: Step) -> int:
        return self._synchronised(step)[0]

    def _synchronised(self, step: Step) -> tuple[int, int]:
        """(until the device has finished, until the step returned) of one step."""
        begun = self._device.now_ns()
        step()
        returned = self._device.now_ns()
        self._device.synchronize()
        return self._device.now_ns() - begun, returned - begun

    def prepare(self, step: Step, size: int, settling_calls: int) -> None:
        """Find out what a block may cost, how long the host needs to issue a step, and whether the gate holds
        it. A step that cannot be held costs `TRIES` samples here and none later.
        """
        device = self._device
        rows = []
        for _ in range(3):
            device.synchronize()
            begun = device.now_ns()
            device.flush()
            device.synchronize()
            flushed = device.now_ns() - begun
            wall, issued = self._synchronised(step)
            rows.append((wall, issued, flushed))
        latency, issued, flushed = (statistics.median(column) for column in zip(*rows, strict=True))
        self._issued.extend(row[1] for row in rows)
        settling = settling_calls * latency
        self._budget = LENGTHENING * (settling + 2 * size * (latency + flushed)) - settling
        fewest, most = PIPELINED_STEPS
        affordable = SHARES["wall_pipelined_ns"] * self._budget / max(1.0, latency)
        self._pipelined_steps = int(min(most, max(fewest, affordable)))
        self._cost["wall_sync_ns"] = latency + flushed
        self._cost["wall_pipelined_ns"] = self._pipelined_steps * latency
        self._gate = self._choice.gate() if issued <= LONGEST_HOLD_NS else None
        if self._gate is not None:
            begun = device.now_ns()
            if self._gated(step) is None:
                self._gate = None
            self._cost["device_ns"] = device.now_ns() - begun
            self._samples = self._verified = self._retries = 0

    def block(self, step: Step, size: int) -> BlockTimes:
        begun = self._device.now_ns()
        times: dict[str, list[int]] = {
            name: []
            for name in (
                *("device_ns", "issue_ns", "wall_sync_ns", "wall_pipelined_ns"),
                *("return_ns", "unflushed_ns"),
            )
        }
        if self._gate is not None:
            self._spend("device_ns", size, lambda: self._take_gated(step, times))
        if self._gate is not None and self._device.flushes:
            self._spend("unflushed_ns", size, lambda: self._take_unflushed(step, times))
        self._spend("wall_sync_ns", size, lambda: self._take_synchronised(step, times))
        self._spend("wall_pipelined_ns", 1, lambda: self._take_pipelined(step, times))
        return BlockTimes(times, self._device.now_ns() - begun)

    def _spend(self, name: str, most: int, take: Callable[[], None]) -> None:
        """Take as many as this time's share pays for, `most` at most, and one in the first block in any case.

        A share that is left over buys no more than one sample of a later block.
        """
        is_first = self._credit[name] == 0.0
        self._credit[name] += SHARES[name] * self._budget
        samples = 0
        while samples < most and (self._credit[name] >= self._cost[name] or (is_first and samples == 0)):
            begun = self._device.now_ns()
            take()
            self._cost[name] = max(1, self._device.now_ns() - begun)
            self._credit[name] -= self._cost[name]
            samples += 1
        self._credit[name] = min(self._credit[name], self._cost[name])

    def _take_gated(self, step: Step, times: dict[str, list[int]]) -> None:
        if self._gate is None:
            return
        sample = self._gated(step)
        if sample is None:
            self._failed_in_a_row += 1
            if self._failed_in_a_row >= _GIVE_UP_AFTER:
                self._gate = None
            return
        self._failed_in_a_row = 0
        device_ns, issue_ns = sample
        times["device_ns"].append(device_ns)
        times["issue_ns"].append(issue_ns)

    def _take_unflushed(self, step: Step, times: dict[str, list[int]]) -> None:
        sample = self._gated(step, flush=False)
        if sample is not None:
            times["unflushed_ns"].append(sample[0])

    def _gated(self, step: Step, *, flush: bool = True) -> tuple[int, int] | None:
        """(device time, host issue time) of one step behind the gate; None where the device had always begun
        before the step returned.
        """
        assert self._gate is not None
        device = self._device
        hold = round(_HEADROOM * max(self._issued)) + _MARGIN_NS
        self._samples += 1
        for attempt in range(TRIES):
            if attempt:
                self._retries += 1
            hold = min(hold, LONGEST_HOLD_NS)
            if flush:
                device.flush()
            self._gate.close(hold)
            try:
                device.record(self._start)
                begun = device.now_ns()
                step()
                returned = device.now_ns()
                device.record(self._end)
                # What was enqueued last is still on its way to the device.
                _let_pass(device, _ARRIVAL_NS)
                was_ahead = not device.is_reached(self._start)
            finally:
                self._gate.open()
            device.synchronize()
            if was_ahead:
                self._verified += 1
                self._issued.append(returned - begun)
                return device.elapsed_ns(self._start, self._end), returned - begun
            hold *= 2
        return None

    def _take_synchronised(self, step: Step, times: dict[str, list[int]]) -> None:
        self._device.flush()
        self._device.synchronize()
        wall, returned = self._synchronised(step)
        times["wall_sync_ns"].append(wall)
        times["return_ns"].append(returned)

    def _take_pipelined(self, step: Step, times: dict[str, list[int]]) -> None:
        device, count = self._device, self._pipelined_steps
        device.synchronize()
        begun = device.now_ns()
        for _ in range(count):
            step()
        device.synchronize()
        times["wall_pipelined_ns"].append(round((device.now_ns() - begun) / count))

    def results(self, times: Times) -> tuple[Times, dict[str, Any]]:
        """Device times of one method: gated where there are `FEWEST`, else none yet."""
        arrays = dict(times)
        returned, unflushed = arrays.pop("return_ns", []), arrays.pop("unflushed_ns", [])
        is_gated = len(arrays["device_ns"]) >= FEWEST
        if not is_gated:
            arrays |= {"issue_ns": returned, "device_ns": []}
        gate = self._choice.gate() if is_gated else None
        counted = {"samples": self._samples, "verified": self._verified, "retries": self._retries}
        return arrays, {
            "method": "gated" if is_gated else "ungated",
            "gate": None if gate is None else {"kind": gate.kind, "steps": 1} | counted,
            # The device cannot have waited for a host that was done before it began.
            "synchronises": False if is_gated else None,
            "unflushed_ns": median_ns(unflushed) if is_gated else None,
            "pipelined_steps": self._pipelined_steps,
        }

    def traced(
        self, step: Step, untraced: SideTimes, found: Observed, waits: int, *, by_tracing: bool
    ) -> SideTimes:
        """`kept` with what the device itself noted, in place of gated times with `by_tracing`; a side without
        either has events without a gate, which are labelled so. `waits`: those of the tracing itself.
        """
        times, facts = untraced
        fullest = found.fullest
        facts = facts | {
            "launches": None if fullest is None else fullest.launches,
            "graph_launches": None if fullest is None else fullest.graph_launches,
            "streams": None if fullest is None else fullest.streams,
            "tracing": {"sessions": found.sessions, "whole": found.whole, "problem": found.problem},
        }
        if facts["synchronises"] is None and fullest is not None:
            facts["synchronises"] = found.waits > waits
        if by_tracing:
            facts |= {"gated_ns": times["device_ns"], "unflushed_ns": median_ns(found.unflushed_ns)}
            return times | {"device_ns": found.busy_ns}, facts | {"method": "cupti"}
        if facts["method"] == "ungated":
            return times | {"device_ns": self._ungated(step)}, facts
        return times, facts

    def _ungated(self, step: Step) -> list[int]:
        """Plain events around `FEWEST` steps: what is left where a device has neither gate nor tracing."""
        times = []
        for _ in range(FEWEST):
            self._device.flush()
            self._device.record(self._start)
            step()
            self._device.record(self._end)
            self._device.synchronize()
            times.append(self._device.elapsed_ns(self._start, self._end))
        return times

    def release(self) -> None:
        self._device.release()
