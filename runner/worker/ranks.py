"""Workloads of ranks: the measured process is rank 0, and the others take every step that it takes.

Rank 0 alone times and decides; it tells the others by one byte a step which side's comes next. Each rank
notes what was compiled at which of its steps, since one that compiles lets the others wait in a collective.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any, BinaryIO

import torch

from compilewatch.runner.worker.compiler.compiling import compiled_variant, load
from compilewatch.runner.worker.numerics import seed_all
from compilewatch.runner.worker.step import host
from compilewatch.runner.worker.step.internals import (
    as_written,
    collect_log,
    force_eager,
    import_compile_stack,
    listen_to_events,
)
from compilewatch.runner.worker.step.loading import WorkloadError, build_workload, import_builder
from compilewatch.runner.worker.step.messages import (
    Channel,
    Failure,
    RankFailedError,
    Record,
    Specification,
    from_worker,
)
from compilewatch.runner.worker.step.state import State
from compilewatch.runner.worker.step.steps import Variant, grad_context, iteration, make_variant
from compilewatch.runner.worker.streams import Compilations
from compilewatch.runner.workloads.built import Built

_EAGER, _COMPILED, _RESTORE = b"e", b"c", b"r"
# State is put back as warm-up begins, and then as sampling does: from there on a rank is bound as rank 0 is.
_SAMPLING = 2
_MEETING = "meeting"
_MOST_STEPS = 1000
_ENDING_S = 10.0
# Of a collective, where nobody says how long a trial may take.
_TIMEOUT_S = 1800.0
# Of gloo, where the process at the other end of a collective is gone.
_OTHER_END = "Connection closed by peer"
_MAIN = Path(__file__).with_name("main.py")


def _world_size(spec: Specification) -> int:
    """How many take each step together."""
    return spec.workload.ranks or 1


def device_of(spec: Specification, rank: int) -> torch.device:
    """The CPU that all ranks share, or the GPU that many places after the measured one.

    Raises WorkloadError where there are fewer GPUs than ranks.
    """
    device = torch.device(spec.device)
    if device.type == "cpu":
        return device
    last = (device.index or 0) + _world_size(spec)
    if torch.cuda.device_count() < last:
        raise WorkloadError(
            f"{_world_size(spec)} ranks from {device} on need {last} GPUs; "
            f"{torch.cuda.device_count()} are visible."
        )
    return torch.device(device.type, (device.index or 0) + rank)


def threads_of(spec: Specification) -> int:
    """Those of one rank: all of them share the threads of the trial."""
    return max(1, spec.threads // _world_size(spec))


def _join(spec: Specification, rank: int, meeting: str) -> None:
    device = device_of(spec, rank)
    if device.type == "cuda":
        torch.cuda.set_device(device)
    torch.distributed.init_process_group(
        "nccl" if device.type == "cuda" else "gloo",
        init_method=f"file://{meeting}",
        rank=rank,
        world_size=_world_size(spec),
        timeout=timedelta(seconds=spec.timeout_s or _TIMEOUT_S),
    )


class Steps:
    """The steps of one rank: what each took, and what was compiled at it."""

    def __init__(self, log: Sequence[tuple[str, str]] = ()) -> None:
        self.compilations = Compilations(log)
        self.compilations.at = 0
        self.is_reported = False
        """Whether this release of torch tells of its compilations."""
        self._ns: list[int] = []
        self._cpu_ns: list[int] = []

    def counted(self, variant: Variant) -> Variant:
        """`variant` whose batches are counted as steps."""

        def one_batch(batch: Any) -> Any:
            before, began, cpu = (
                len(self.compilations.compiles),
                time.perf_counter_ns(),
                time.process_time_ns(),
            )
            self.compilations.at += 1
            result = variant.one_batch(batch)
            if len(self.compilations.compiles) != before:
                self._ns.clear()
                self._cpu_ns.clear()
            elif len(self._ns) < _MOST_STEPS:
                self._ns.append(time.perf_counter_ns() - began)
                self._cpu_ns.append(time.process_time_ns() - cpu)
            return result

        return replace(variant, one_batch=one_batch, step=iteration(variant.built, one_batch))

    def facts(self, rank: int, *, on_cpu: bool) -> dict[str, Any]:
        """`RankFacts` of the record; times are those since the last compilation."""
        found = self.compilations.compiles
        return {
            "rank": rank,
            "steps": self.compilations.at,
            "latency_ns": round(statistics.median(self._ns)) if on_cpu and self._ns else None,
            "cpu_ns": round(statistics.median(self._cpu_ns)) if on_cpu and self._cpu_ns else None,
            "compile_ns": sum(each["took_ns"] for each in found) if self.is_reported else None,
            "compiles": [
                {"step": each["batch"]} | {key: each[key] for key in ("part", "took_ns", "reason")}
                for each in found
            ]
            if self.is_reported
            else None,
        }


class Ranks:
    """The ranks of a workload as rank 0 sees them; none until it starts the others, which may be none, and
    joins their process group. They end with the process that started them.
    """

    def __init__(self) -> None:
        self._steps = Steps()
        self._processes: list[subprocess.Popen[bytes]] = []
        self._pipes: list[BinaryIO] = []
        self._folder = ""

    @property
    def are_grouped(self) -> bool:
        """Whether each step is one of a process group, if only of one rank."""
        return bool(self._folder)

    def start(self, spec: Specification) -> None:
        """Start the others and meet them. Raises RankFailedError where one does not come, WorkloadError where
        there are fewer GPUs than ranks.
        """
        self._folder = tempfile.mkdtemp(prefix="ranks-")
        meeting = str(Path(self._folder) / "meeting")
        device_of(spec, _world_size(spec) - 1)
        for rank in range(1, _world_size(spec)):
            ours, theirs = os.pipe()
            # Its OpenMP binds its threads to cores of its own, where all share those of the host. One of a
            # GPU finds its core itself.
            on_cpu = spec.device == "cpu"
            binding = host.binding_to(host.share_of(rank, _world_size(spec))) if on_cpu else {}
            process = subprocess.Popen(
                [sys.executable, "-I", str(_MAIN), str(theirs)],
                stdin=subprocess.PIPE,
                pass_fds=(theirs,),
                env=os.environ | binding,
            )
            os.close(theirs)
            self._processes.append(process)
            self._pipes.append(os.fdopen(ours, "rb"))
            cpus = spec.cpus_of_ranks[rank - 1] if spec.cpus_of_ranks else ()
            follower = replace(spec, purpose="rank", rank=rank, meeting=meeting, cpus=cpus)
            self._tell(rank - 1, follower.line())
        # One that is gone before it comes to the meeting would be waited for until the end of the trial.
        if all(_comes(pipe) for pipe in self._pipes):
            _join(spec, 0, meeting)
        else:
            self._last_words()
            raise RankFailedError(Failure("crash", _MEETING, "A rank ended before it met the others."))

    def _tell(self, number: int, data: bytes) -> None:
        stdin = self._processes[number].stdin
        assert stdin is not None
        os.write(stdin.fileno(), data)

    def tell(self, command: bytes) -> None:
        """Say what comes next to all. Raises OSError where one is gone."""
        for number in range(len(self._processes)):
            self._tell(number, command)

    def restore(self) -> None:
        """Let them put their state back, as rank 0 does now."""
        self.tell(_RESTORE)

    @contextlib.contextmanager
    def listening(self, log: Sequence[tuple[str, str]]) -> Iterator[None]:
        """Note what this rank compiles inside."""
        self._steps = Steps(log)
        hear = self._steps.compilations
        with listen_to_events(hear.begin, hear.end) as self._steps.is_reported:
            yield

    def led(self, variant: Variant, *, is_compiled: bool) -> Variant:
        """`variant`, whose every iteration the others take too where there is a process group."""
        if not self.are_grouped:
            return variant
        # Both sides are counted, so that it costs them the same.
        variant = (self._steps if is_compiled else Steps()).counted(variant)
        stream = variant.built.stream
        batches = 1 if stream is None else sum(1 for _ in stream.batches())
        command, number = _COMPILED if is_compiled else _EAGER, 0

        def one_batch(batch: Any) -> Any:
            nonlocal number
            if number % batches == 0:
                self.tell(command)
            number += 1
            return variant.one_batch(batch)

        return replace(variant, one_batch=one_batch, step=iteration(variant.built, one_batch))

    def facts(self, *, on_cpu: bool) -> list[dict[str, Any]]:
        """`RankFacts` of each; the others end with it. Raises RankFailedError where one failed by
        itself.
        """
        own = self._steps.facts(0, on_cpu=on_cpu)
        return [own, *self._last_words()] if self.are_grouped else []

    def _last_words(self) -> list[dict[str, Any]]:
        ends = time.monotonic() + _ENDING_S
        for process in self._processes:
            with contextlib.suppress(OSError):
                assert process.stdin is not None
                process.stdin.close()
        records = [
            _last_word(process, pipe, ends)
            for process, pipe in zip(self._processes, self._pipes, strict=True)
        ]
        shutil.rmtree(self._folder, ignore_errors=True)
        self._processes, self._pipes, self._folder = [], [], ""
        for rank, record in enumerate(records, 1):
            if record.failure is not None and _OTHER_END not in record.failure.message:
                message = f"Rank {rank}: {record.failure.message}"
                raise RankFailedError(replace(record.failure, message=message))
        return [record.probes for record in records if record.probes is not None]


def _comes(pipe: BinaryIO) -> bool:
    """Whether the process behind `pipe` says that it comes to the meeting before it is gone."""
    return any(getattr(from_worker(line), "phase", None) == _MEETING for line in pipe)


def _last_word(process: subprocess.Popen[bytes], pipe: BinaryIO, ends: float) -> Record:
    """The record of a process that is told no more; an empty one of a process that does not end by then."""
    ending = threading.Timer(max(0.0, ends - time.monotonic()), process.kill)
    ending.start()
    with pipe:
        lines = pipe.readlines()
    ending.cancel()
    process.wait()
    for line in lines:
        # The last line of a process that was killed may be half of one.
        with contextlib.suppress(ValueError):
            if isinstance(message := from_worker(line), Record):
                return message
    return Record()


def follow(spec: Specification, channel: Channel, timed_on: Callable[[], frozenset[int]]) -> dict[str, Any]:
    """Take the steps of rank 0 until it tells no more, on the cores that `timed_on` gives once every side
    has compiled. Returns `RankFacts` of the record.
    """
    channel.enter(_MEETING)
    _join(spec, spec.rank, spec.meeting)
    device = device_of(spec, spec.rank)
    channel.enter("build_model")
    builder = import_builder(spec.workload.target, spec.workload.path)

    def built() -> Built:
        seed_all(spec.seed)
        made = build_workload(builder, spec.workload, device)
        return replace(made, model_or_fn=as_written(made.model_or_fn))

    with collect_log() as log:
        import_compile_stack()
        steps = Steps(log)
        hear = (steps.compilations.begin, steps.compilations.end)
        sides = _Sides(spec, built, steps, channel.enter, timed_on)
        with listen_to_events(*hear) as steps.is_reported:
            for command in iter(lambda: sys.stdin.buffer.read(1), b""):
                sides.take(command)
    return steps.facts(spec.rank, on_cpu=device.type == "cpu")


class _Sides:
    """Eager and compiled side of a rank that follows."""

    def __init__(
        self,
        spec: Specification,
        built: Callable[[], Built],
        steps: Steps,
        enter: Callable[[str], None],
        timed_on: Callable[[], frozenset[int]],
    ) -> None:
        self._spec = spec
        self._timed_on = timed_on
        self._restores = 0
        self._enter = enter
        self._steps = steps
        first = built()
        self._built = {_EAGER: first}
        if spec.strategy.kind != "eager":
            self._built[_COMPILED] = built()
        self._states = [State(each) for each in self._built.values()]
        self._variants = {_EAGER: make_variant(first)}
        enter("eager_first")

    def take(self, command: bytes) -> None:
        """One step of the side that is told, or its state as it was."""
        if command == _RESTORE:
            self._restores += 1
            if self._restores == _SAMPLING:
                os.sched_setaffinity(0, self._timed_on())
            for state in self._states:
                state.restore(optimizers=False)
            return
        if command not in self._variants:
            self._enter("first_call")
            built, strategy = self._built[command], self._spec.strategy
            artifacts = Path(self._spec.artifacts)
            if artifacts.exists():
                load(strategy, artifacts)
            variant = compiled_variant(built, strategy, artifacts, torch.device(self._spec.device))
            self._variants[command] = self._steps.counted(variant)
        variant = self._variants[command]
        with grad_context(variant.built), force_eager() if command == _EAGER else contextlib.nullcontext():
            variant.step()
