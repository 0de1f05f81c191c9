"""Which phase a trial is in: told to the runner, timed, and begun with what steps change as it was."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator

import torch

from compilewatch.runner.worker.ranks import Ranks
from compilewatch.runner.worker.step.messages import Channel, Record, Specification
from compilewatch.runner.worker.step.state import State
from compilewatch.runner.worker.timing.sampling import Deadline

_RESTORING = ("warmup", "sampling", "memory", "numerics")
_REPEATED = ("warmup", "sampling")


class Progress:
    """One case in this process: `record` is filled as its parts become known."""

    def __init__(self, spec: Specification, channel: Channel, record: Record, deadline: Deadline) -> None:
        self.spec = spec
        self.channel = channel
        self.record = record
        self.deadline = deadline
        self.device = torch.device(spec.device)
        self.is_eager = spec.strategy.kind == "eager"
        self.ranks = Ranks()
        self.states: list[State] = []
        """What the steps of each side change, eager's first."""
        self._entered: dict[str, int] = {}

    def enter(self, phase: str) -> None:
        """Say that `phase` begins now, and what is known before it."""
        self.channel.keep(self.record)
        self.channel.enter(phase)
        # What was put back once and compiled for anew is left alone: else that would never end.
        is_repeated = phase in _REPEATED and phase in self._entered
        self._entered.setdefault(phase, time.monotonic_ns())
        if phase in _RESTORING and not is_repeated:
            for state in self.states:
                state.restore(optimizers=False)
            self.ranks.restore()

    def since_ns(self, phase: str) -> int:
        """How long ago `phase` was entered first; 0 where it never was."""
        now = time.monotonic_ns()
        return now - self._entered.get(phase, now)

    @contextlib.contextmanager
    def phase(self, name: str, key: str | None = None) -> Iterator[None]:
        """A phase whose time the cold start has as `key`."""
        self.enter(name)
        started = time.monotonic_ns()
        yield
        if key is not None:
            self.record.cold_start[key] = time.monotonic_ns() - started

    @contextlib.contextmanager
    def own_time(self) -> Iterator[None]:
        """What is done inside is no cost of the workload."""
        started = time.monotonic_ns()
        yield
        cold = self.record.cold_start
        cold["harness_ns"] = cold.get("harness_ns", 0) + time.monotonic_ns() - started
