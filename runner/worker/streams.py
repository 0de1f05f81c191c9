"""Workloads of several batches: at which batch something was compiled, what it cost, what padding costs."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

import torch

from compilewatch.runner.worker.compiler import compiler_facts
from compilewatch.runner.worker.step.steps import Variant, require_values, tensors_of
from compilewatch.runner.workloads.built import Batch, Built

# Enough for any epoch that a person reads batch by batch; a longer one keeps its compilations all the same.
_MOST_BATCHES = 1000
_MOST_COMPILES = 200
# Regions that torch times (torch/_dynamo/utils.py, `dynamo_timed`): a compilation of a frame, and of the
# backward of one, which may come at the first backward pass.
_PARTS = {"entire_frame_compile": "forward", "entire_backward_compile": "backward"}


def shapes_of(batch: Batch) -> tuple[torch.Size, ...]:
    """Shapes of its tensors: what a compiled graph is specialised to."""
    return tuple(tensor.shape for tensor in tensors_of(list(batch.inputs)))


class Compilations:
    """Notes what was compiled at which batch or step, `at`, counted from 1.

    `begin` and `end` hear torch's timed regions; `log` is read for why something was compiled again.
    """

    def __init__(
        self, log: Sequence[tuple[str, str]] = (), clock: Callable[[], int] = time.perf_counter_ns
    ) -> None:
        self._log = log
        self._clock = clock
        self._open: list[str] = []
        self._began = 0
        self._log_before = 0
        self.at = 1
        self.compiles: list[dict[str, Any]] = []

    def begin(self, event: str) -> None:
        """A region of torch begins. Of compilations within each other the outermost counts."""
        if event in _PARTS:
            if not self._open:
                self._began = self._clock()
                self._log_before = len(self._log)
            self._open.append(event)

    def end(self, event: str) -> None:
        """A compilation inside another one is part of it: a backward that is compiled ahead, for instance."""
        if event not in self._open:
            return
        del self._open[self._open.index(event) :]
        if not self._open and len(self.compiles) < _MOST_COMPILES:
            again = compiler_facts.recompiles(list(self._log[self._log_before :]))
            self.compiles.append(
                {
                    "batch": self.at,
                    "part": _PARTS[event],
                    "took_ns": self._clock() - self._began,
                    "reason": again[0]["reason"] if again else None,
                }
            )


class FirstIteration(Compilations):
    """Goes through a stream once, noting each batch's time and what was compiled meanwhile."""

    def __init__(
        self, log: Sequence[tuple[str, str]] = (), clock: Callable[[], int] = time.perf_counter_ns
    ) -> None:
        super().__init__(log, clock)
        self.is_reported = False
        """Whether this release of torch tells of its regions; else no compilation is known."""
        self.batches_ns: list[int] = []

    def run(self, variant: Variant) -> Any:
        """One iteration, as `variant.step` does it. A batch's time includes that of getting it."""
        stream = variant.built.stream
        if stream is None:
            return variant.step()
        result, before = None, self._clock()
        for batch in stream.batches():
            result = variant.one_batch(batch)
            now = self._clock()
            if len(self.batches_ns) < _MOST_BATCHES:
                self.batches_ns.append(now - before)
            before = now
            self.at += 1
        return result

    def finish(self, variant: Variant, device: torch.device) -> None:
        """One iteration until `device` has finished it. Raises WorkloadError where it returns no values."""
        require_values(self.run(variant))
        if device.type == "cuda":
            torch.cuda.synchronize(device)


def waited_ns(variant: Variant, device: torch.device) -> tuple[int, int]:
    """Of one warm iteration the time until `device` has finished it, and in it the time until each batch was
    there, while the device may still have had work.
    """
    stream = variant.built.stream
    assert stream is not None
    waited, began = 0, time.perf_counter_ns()
    batches = iter(stream.batches())
    while True:
        began_ns = time.perf_counter_ns()
        batch = next(batches, None)
        waited += time.perf_counter_ns() - began_ns
        if batch is None:
            break
        variant.one_batch(batch)
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter_ns() - began, waited


def facts(
    built: Built,
    own: FirstIteration,
    samples_ns: Sequence[int],
    control: FirstIteration | None,
    control_samples_ns: Sequence[int],
) -> dict[str, Any] | None:
    """`StreamFacts` of the record; None for a workload of one batch. Without `control`, `own` is eager."""
    stream = built.stream
    if stream is None:
        return None
    shapes = [shapes_of(batch) for batch in stream.batches()]
    return {
        "batches": len(shapes),
        "shapes": len(set(shapes)),
        "policy": stream.policy,
        "tokens": stream.tokens,
        "padded_tokens": stream.padded_tokens,
        "latency_per_token_ns": _per_token(samples_ns, stream.tokens),
        "control_latency_per_token_ns": _per_token(control_samples_ns, stream.tokens),
        "first_batches_ns": own.batches_ns,
        "control_first_batches_ns": [] if control is None else control.batches_ns,
        "compiles": own.compiles if own.is_reported else None,
    }


def _per_token(samples_ns: Sequence[int], tokens: int | None) -> float | None:
    return statistics.median(samples_ns) / tokens if samples_ns and tokens else None
