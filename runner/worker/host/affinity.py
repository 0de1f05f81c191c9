"""Which CPUs this process and its children may use, around libgomp's binding of the main thread.

`OMP_PROC_BIND` makes libgomp pin the main thread to one core as torch is loaded. Children inherit the pin,
and torch takes from it with how many threads it compiles. A program of a user's own has none. So the main
thread is bound only while steps are timed.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

_CPUS = Path("/sys/devices/system/cpu")
_NO_RANDOMIZE = 0x0040000
_BINDING = ("OMP_PROC_BIND", "OMP_PLACES")
_MOST_COMPILE_THREADS = 32
COMPILE_THREADS = "TORCHINDUCTOR_COMPILE_THREADS"
"""The variable by which torch is told with how many threads it compiles."""

ALL = frozenset(os.sched_getaffinity(0))
"""The CPUs this process was given; right only if this module is imported before torch."""


def release_children() -> None:
    """Keep the binding of this process's own threads, which libgomp has read by now, from its children."""
    for name in _BINDING:
        os.environ.pop(name, None)


@contextlib.contextmanager
def running_on(cpus: frozenset[int]) -> Iterator[None]:
    """Let the main thread, and what it starts meanwhile, run on `cpus`; bind it again afterwards."""
    bound = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cpus)
    try:
        yield
    finally:
        os.sched_setaffinity(0, bound)


def unbind() -> frozenset[int]:
    """Let the main thread, and what it starts from now on, run on every CPU that this process was given.

    Returns where it was bound: steps are timed there.
    """
    bound = frozenset(os.sched_getaffinity(0))
    os.sched_setaffinity(0, ALL)
    return bound


def share_of(part: int, parts: int) -> frozenset[int]:
    """The CPUs of one of `parts` processes that run beside each other: whole cores, as many for each; all
    where there are fewer cores than processes.
    """
    cores = sorted({tuple(sorted(siblings_of(cpu) & ALL)) for cpu in ALL})
    each = len(cores) // parts
    return frozenset(cpu for core in cores[part * each : (part + 1) * each] for cpu in core) or ALL


def binding_to(cpus: frozenset[int]) -> dict[str, str]:
    """Variables by which libgomp binds a process that starts to the cores of `cpus`; none where they are all
    that there are. What the process may use stays as it is.
    """
    if cpus == ALL:
        return {}
    cores = sorted({tuple(sorted(siblings_of(cpu) & cpus)) for cpu in cpus})
    places = ",".join(f"{{{','.join(map(str, core))}}}" for core in cores)
    return dict(zip(_BINDING, ("true", places), strict=True))


def step_threads(environment: Mapping[str, str] = os.environ) -> int:
    """With how many threads a step runs on a CPU, unless the configuration says otherwise: as many as torch
    gives a plain script, but one CPU stays free. With as many threads as CPUs, one other busy process makes
    OpenMP's spinning threads wait for each other and a step up to 100 times slower.

    Torch's number is one a core, hyperthreads not counted, or fewer where the environment asks for fewer
    (aten/src/ATen/ParallelOpenMP.cpp takes the number of MKL, which reads these variables in this order).
    """
    threads = min(len({siblings_of(cpu) & ALL for cpu in ALL}), max(1, len(ALL) - 1))
    for name in ("MKL_NUM_THREADS", "OMP_NUM_THREADS"):
        with contextlib.suppress(KeyError, ValueError):
            if (asked := int(environment[name].partition(",")[0])) > 0:
                return min(asked, threads)
    return threads


def compile_threads_of_a_script() -> int:
    """With how many threads torch compiles in a process that nobody bound, unless a strategy says otherwise
    (torch/_inductor/config.py, `decide_compile_threads`).
    """
    with contextlib.suppress(KeyError, ValueError):
        return int(os.environ[COMPILE_THREADS])
    return min(_MOST_COMPILE_THREADS, len(ALL))


def launching_core(allowed: frozenset[int], interrupts: dict[int, int]) -> int | None:
    """The core from which a GPU is fed: of those allowed the one with the fewest interrupts, and neither core
    0 nor a hyperthread of it where there is another, since interrupts land there first.
    """
    candidates = allowed - siblings_of(0) or allowed
    return min(candidates, key=lambda cpu: (interrupts.get(cpu, 0), -cpu), default=None)


def backward_core(launching: int, allowed: frozenset[int], interrupts: dict[int, int]) -> int | None:
    """The core for autograd's thread of a GPU: the nearest to `launching` by cache and socket, of those the
    one with the fewest interrupts. A hyperthread of core 0 or of `launching` only where no other core is
    allowed; None where `launching` is alone.
    """
    others = allowed - {launching}
    apart = others - siblings_of(launching)
    candidates = apart - siblings_of(0) or apart or others
    near = [
        _shared(launching, part) for part in ("cache/index3/shared_cpu_list", "topology/package_cpus_list")
    ]
    return min(
        candidates,
        key=lambda cpu: (*(cpu not in group for group in near), interrupts.get(cpu, 0), -cpu),
        default=None,
    )


def siblings_of(cpu: int) -> frozenset[int]:
    """The hyperthreads of the core that `cpu` is one of; itself alone where the kernel does not tell."""
    return _shared(cpu, "topology/thread_siblings_list")


def _shared(cpu: int, part: str) -> frozenset[int]:
    """The CPUs that share `part` of the kernel's directory of `cpu` with it."""
    try:
        return frozenset(_listed((_CPUS / f"cpu{cpu}/{part}").read_text().strip()))
    except (OSError, ValueError):
        return frozenset({cpu})


def _listed(text: str) -> Iterator[int]:
    """CPU numbers of the kernel's list format, e.g. "0-2,8"."""
    for part in text.split(","):
        low, _, high = part.partition("-")
        yield from range(int(low), int(high or low) + 1)


def interrupts_by_cpu(text: str | None = None) -> dict[int, int]:
    """Interrupts since boot by CPU, from /proc/interrupts; empty where that cannot be read."""
    try:
        lines = (Path("/proc/interrupts").read_text() if text is None else text).splitlines()
        cpus = [int(name.removeprefix("CPU")) for name in lines[0].split()]
    except (OSError, ValueError, IndexError):
        return {}
    interrupts = dict.fromkeys(cpus, 0)
    for line in lines[1:]:
        counts = line.partition(":")[2].split()[: len(cpus)]
        # The last lines hold one number for all CPUs.
        if len(counts) == len(cpus) and all(count.isdigit() for count in counts):
            for cpu, count in zip(cpus, counts, strict=True):
                interrupts[cpu] += int(count)
    return interrupts


@dataclass(frozen=True)
class Cores:
    """Where the two threads that feed a GPU run. None: bound nowhere, or not bound apart."""

    launching: int | None = None
    backward: int | None = None
    timed_on: frozenset[int] = ALL
    """Where the main thread is bound while steps are timed, on a CPU too."""


def bind_feeding_threads(start_backward: Callable[[], object], share: Iterable[int] = ()) -> Cores:
    """Bind this thread alone to `launching_core`, and the threads that `start_backward` starts to
    `backward_core`, both of this GPU's `share` of the CPUs where it has one. Threads that OpenMP has bound
    already stay where they are.

    A thread that autograd starts inherits the mask of whoever calls backward first. On one core with the
    launching thread it preempts it for the whole backward pass.
    """
    allowed = ALL & frozenset(share) or ALL
    interrupts = interrupts_by_cpu()
    launching = launching_core(allowed, interrupts)
    if launching is None:
        return Cores()
    backward = backward_core(launching, allowed, interrupts) or backward_core(launching, ALL, interrupts)
    try:
        os.sched_setaffinity(0, {launching})
        if backward is not None:
            with running_on(frozenset({backward})):
                start_backward()
    except OSError:
        return Cores()
    return Cores(launching, backward, frozenset({launching}))


def address_layout() -> str | None:
    """`random` or `fixed`: whether the kernel places a process's memory anew each time (personality(2), flag
    ADDR_NO_RANDOMIZE, and randomize_va_space); None where it does not tell.
    """
    try:
        fixed = int(Path("/proc/self/personality").read_text(), 16) & _NO_RANDOMIZE
        system = int(Path("/proc/sys/kernel/randomize_va_space").read_text())
    except (OSError, ValueError):
        return None
    return "fixed" if fixed or system == 0 else "random"
