"""Which phase a trial is in: told to the runner, timed, and begun with what steps change as it was."""

from __future__ import annotations

import contextlib
import inspect
import time
from collections.abc import Callable, Iterator

import torch

from compilewatch.runner.worker.ranks import Ranks
from compilewatch.runner.worker.step.growth import Found
from compilewatch.runner.worker.step.loading import WorkloadError
from compilewatch.runner.worker.step.messages import Channel, Record, Specification
from compilewatch.runner.worker.step.state import State
from compilewatch.runner.worker.timing.sampling import Deadline
from compilewatch.runner.workloads.built import Built

_RESTORING = ("warmup", "sampling", "memory", "numerics")
_REPEATED = ("warmup", "sampling")


def reset(built: Built) -> None:
    """Call the `reset` that a builder gave, with the model where it takes one. Raises WorkloadError."""
    if built.reset is None:
        return
    try:
        takes_model = bool(inspect.signature(built.reset).parameters)
        built.reset(*([built.model_or_fn] if takes_model else []))
    except Exception as error:
        raise WorkloadError(f"The workload's reset raised {type(error).__name__}: {error}") from error


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
        self.resets: list[Built] = []
        """The sides whose builder gave a `reset`."""
        self.found = Found()
        """What eager calls do to the state."""
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
            for built in self.resets:
                reset(built)
            self.ranks.restore()

    def put_back(self, built: Built, state: State) -> Callable[[], None] | None:
        """What puts back the state of one side; None where no call changes it. An optimizer's moments stay,
        and the weights that it writes: they change no length.
        """
        if self.ranks.are_grouped or not (self.found.changes or built.reset is not None):
            return None

        def restore() -> None:
            state.restore(optimizers=False, weights=not state.weights_change)
            reset(built)

        return restore

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
