"""One trial from the inside, in the order in which a process meets its costs."""

from __future__ import annotations

import contextlib
import hashlib
import math
import os
import sys
import time
import traceback
from functools import partial
from pathlib import Path

from compilewatch.runner.worker.failures import WrongResultError, describe, is_ours, kind_of, recompiled_on
from compilewatch.runner.worker.step import host
from compilewatch.runner.worker.step.messages import (
    Channel,
    Facts,
    Failure,
    RankFailedError,
    Record,
    Specification,
)
from compilewatch.runner.worker.timing.evidence import InstructionCounter
from compilewatch.runner.worker.timing.sampling import Deadline, GrowsError, NotSteadyError

_INSTALLED = {"site-packages", "dist-packages"}
# Where the compiler writes modules that it imports: results, not sources.
_WRITTEN = ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR", "TMPDIR")
_OWN = (Path(__file__).resolve().parents[1], Path(__file__).absolute().parents[2])


def imported_sources(root: str) -> tuple[str, list[str]]:
    """First 16 hex digits of the SHA-256 over path and content of every module of the work tree `root` that
    is imported now, in the order of their paths; and these paths, from the root.

    Installed packages are left out (their releases are recorded), and so are the interpreter, compilewatch
    and what the compiler wrote. Line ends of Windows count as those of Unix.
    """
    top = Path(root).resolve()
    outside = [
        *_interpreter(top),
        *_OWN,
        *(Path(os.environ[each]) for each in _WRITTEN if each in os.environ),
    ]
    sources: dict[str, bytes] = {}
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None)
        if not isinstance(file, str):
            continue
        path = Path(file).resolve()
        if not path.is_relative_to(top) or any(map(path.is_relative_to, outside)):
            continue
        relative = path.relative_to(top)
        if _INSTALLED.isdisjoint(relative.parts) and path.is_file():
            content = path.read_bytes()
            if path.suffix == ".py":
                content = content.replace(b"\r\n", b"\n")
            sources[relative.as_posix()] = hashlib.sha256(content).digest()
    digest = hashlib.sha256()
    for name, content in sorted(sources.items()):
        digest.update(name.encode(errors="surrogateescape") + b"\0" + content)
    return digest.hexdigest()[:16], sorted(sources)


def _interpreter(top: Path) -> list[Path]:
    """Where this Python lies, if that is below the work tree: an environment beside the code."""
    places = (Path(each).resolve() for each in (sys.prefix, sys.base_prefix))
    return [each for each in places if each != top and each.is_relative_to(top)]


def run(spec: Specification, channel: Channel, *, entered_ns: int) -> None:
    """Measure what `spec` says and write the record, of a failure if need be. Raises nothing."""
    record = Record(status="failed", entered_ns=entered_ns)
    try:
        _measure(spec, channel, record, entered_ns)
        if spec.work_tree is not None and spec.purpose == "measure":
            record.source_hash, record.source_files = imported_sources(spec.work_tree)
        record.status = "ok"
    except WrongResultError as error:
        record.failure = Failure("wrong_result", channel.phase, str(error))
    except NotSteadyError as error:
        record.failure = Failure("not_steady", channel.phase, _not_steady(error, record))
    except GrowsError as error:
        record.failure = Failure("not_steady", channel.phase, str(error))
    except RankFailedError as error:
        record.failure = error.failure
    except BaseException as error:  # noqa: BLE001
        traceback.print_exc()
        sys.stderr.flush()
        kind = kind_of(error, channel.phase, ours=is_ours(error))
        record.failure = Failure(kind, channel.phase, describe(error))
    channel.send(record)


def _not_steady(error: NotSteadyError, record: Record) -> str:
    """What the compiler did, why, and what to do about it."""
    events = sorted((record.compiler or {}).get("recompiles") or (), key=lambda each: -each["count"])
    if not events:
        return str(error)
    subject = recompiled_on(events[0]["reason"])
    count = sum(each["count"] for each in events if recompiled_on(each["reason"]) == subject)
    return (
        f"{error} It recompiles on {subject} ({count} times): keep that out of what is compiled, or make "
        "it a tensor."
    )


def _counter() -> InstructionCounter | None:
    with contextlib.suppress(OSError):
        return InstructionCounter()
    return None


def _measured_apart(spec: Specification, channel: Channel, record: Record, bound: frozenset[int]) -> bool:
    """Whether this process is for something else than a case under both sides; then it is done. What times
    eager steps alone does so `bound`.
    """
    import torch

    match spec.purpose:
        case "canaries":
            from compilewatch.runner.worker import canary

            channel.enter("sampling")
            pause = channel.pause if spec.device_state else lambda: None
            workloads = [vars(workload) for workload in spec.workloads]
            with host.running_on(bound):
                record.canaries = canary.measure(torch.device(spec.device), workloads, pause)
        case "probes":
            from compilewatch.runner.worker import probes

            channel.enter("sampling")
            with host.running_on(_timed_on(spec, bound)):
                record.probes = probes.measure(torch.device(spec.device), spec.workloads)
        case "submodules":
            from compilewatch.runner.worker.compiler import compiling
            from compilewatch.runner.worker.step import loading

            channel.enter("build_model")
            builder = loading.import_builder(spec.workload.target, spec.workload.path)
            built = loading.build_workload(builder, spec.workload, torch.device(spec.device))
            record.probes = {"submodules": compiling.direct_submodules(built)}
        case "fit":
            from compilewatch.runner.worker import held_memory

            channel.enter("sampling")
            record.probes = held_memory.fit(spec)
        case "hold":
            from compilewatch.runner.worker import held_memory

            channel.enter("memory")
            record.probes = held_memory.hold(spec)
        case "rank":
            from compilewatch.runner.worker import ranks

            record.probes = ranks.follow(spec, channel, partial(_timed_on, spec, bound))
        case _:
            return False
    return True


def _timed_on(spec: Specification, bound: frozenset[int]) -> frozenset[int]:
    """The cores of the thread that is timed: `bound`, or of a GPU those that feed it."""
    from compilewatch.runner.worker import setup

    if spec.device == "cpu":
        return bound
    return host.bind_feeding_threads(setup.start_backward_threads, spec.cpus).timed_on


def _measure(spec: Specification, channel: Channel, record: Record, entered_ns: int) -> None:
    # Before torch starts threads, which it then counts too.
    counter = _counter() if spec.purpose == "measure" and spec.strategy.kind != "eager" else None
    channel.enter("import_torch")
    started = time.monotonic_ns()
    import torch  # noqa: F401 - what its import takes is measured

    imported = time.monotonic_ns()
    record.cold_start["import_torch_ns"] = imported - started
    host.release_children()
    bound = host.unbind()
    from compilewatch.runner.worker.progress import Progress
    from compilewatch.runner.worker.session import Session
    from compilewatch.runner.worker.setup import configure

    configure(spec)
    machine = host.machine_facts(spec.device, spec.threads)
    channel.send(Facts(machine, host.build_facts(spec.device, spec.settings)))
    # Before torch's compiler is imported, which starts its processes then.
    if (compile_threads := spec.strategy.options.get("compile_threads")) is not None:
        os.environ[host.COMPILE_THREADS] = str(compile_threads)
    if _measured_apart(spec, channel, record, bound):
        return
    deadline = Deadline(math.inf if spec.timeout_s is None else entered_ns + spec.timeout_s * 1e9)
    session = Session(Progress(spec, channel, record, deadline), counter, bound)
    record.cold_start["harness_ns"] = started - entered_ns + time.monotonic_ns() - imported
    try:
        session.run()
    except Exception as error:
        session.note_ranks()
        session.recheck_with_eager(error)
        raise
