"""The host of the measured process: its CPUs and its memory, what this process did with them, what they are.

`OMP_PROC_BIND` makes libgomp pin the main thread to one core as torch is loaded. Children inherit the pin,
and torch takes from it with how many threads it compiles. A program of a user's own has none. So the main
thread is bound only while steps are timed.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
import resource
import socket
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

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
            if (count := int(environment[name].partition(",")[0])) > 0:
                return min(count, threads)
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


_CGROUPS = Path("/sys/fs/cgroup")
_OWN_CGROUPS = Path("/proc/self/cgroup")
_MEMINFO = Path("/proc/meminfo")


def _memory_groups() -> Iterator[tuple[int, int]]:
    """(limit, bytes in use) of each control group that holds this process's memory, those around it too. What
    it caches of files is not in use: the kernel gives it back.
    """
    for line in _OWN_CGROUPS.read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            root, names = _CGROUPS, ("memory.max", "memory.current", "inactive_file")
        elif "memory" in controllers.split(","):
            root = _CGROUPS / "memory"
            names = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
        else:
            continue
        own = root / path.lstrip("/")
        for place in (each for each in (own, *own.parents) if each.is_relative_to(root)):
            # A group without a limit says "max"; a container does not see those around it.
            with contextlib.suppress(OSError, ValueError):
                limit, used = (int((place / name).read_text()) for name in names[:2])
                facts = dict(each.split() for each in (place / "memory.stat").read_text().splitlines())
                yield limit, used - int(facts.get(names[2], 0))


def _meminfo(name: str) -> int | None:
    with contextlib.suppress(OSError, ValueError, StopIteration):
        lines = _MEMINFO.read_text().splitlines()
        return int(next(line for line in lines if line.startswith(f"{name}:")).split()[1]) * 1024
    return None


def memory_limit_bytes() -> int | None:
    """What this process and its children may use together: of the machine, a container or a job; None where
    the system does not tell.
    """
    limits = [found] if (found := _meminfo("MemTotal")) is not None else []
    with contextlib.suppress(OSError, ValueError):
        limits += [limit for limit, _ in _memory_groups()]
    return min(limits, default=None)


def available_memory_bytes() -> int | None:
    """What is left of that; None where the system does not tell."""
    free = [found] if (found := _meminfo("MemAvailable")) is not None else []
    with contextlib.suppress(OSError, ValueError):
        free += [limit - used for limit, used in _memory_groups()]
    return min(free, default=None)


def has_room_for(size_bytes: int) -> bool:
    """Whether the host has four times `size_bytes` left, or does not tell: steps work with large ones."""
    free = available_memory_bytes()
    return free is None or 4 * size_bytes < free


def give_back_memory() -> None:
    """Return to the system what was freed and the allocator still has. Nothing with another than glibc's."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


# torch/_inductor/compile_worker/__main__.py is what Inductor's pool runs; the processes that it forks have
# its command line.
_POOL = b"compile_worker"


def tree_cpu_ns() -> int:
    """User and system time of this process, of the children it has waited for, and of all that still live.

    The pool of compile workers lives on after the first result, so `RUSAGE_CHILDREN` alone would miss it.
    """
    total = 0.0
    for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN):
        usage = resource.getrusage(who)
        total += usage.ru_utime + usage.ru_stime
    ticks = os.sysconf("SC_CLK_TCK")
    living = sum(spent for _, spent in _living_descendants())
    return int(total * 1e9) + living * 1_000_000_000 // ticks


def compile_pool() -> list[int]:
    """The processes of the compiler's pool that live below this one, with the one that starts them."""
    pool = []
    for pid, _ in _living_descendants():
        with contextlib.suppress(OSError):
            if _POOL in Path(f"/proc/{pid}/cmdline").read_bytes():
                pool.append(pid)
    return pool


def _living_descendants() -> list[tuple[int, int]]:
    """Process ids below this process, each with its CPU time in ticks, of children it waited for too."""
    children: dict[int, list[tuple[int, int]]] = {}
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            # proc(5): after the command's closing parenthesis come state, ppid, ... utime stime cutime
            # cstime.
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
            spent = sum(int(value) for value in fields[11:15])
            children.setdefault(int(fields[1]), []).append((int(entry.name), spent))
    found, queue = [], [os.getpid()]
    while queue:
        below = children.get(queue.pop(), [])
        found += below
        queue += [pid for pid, _ in below]
    return found


# Their release changes what is compiled, so it is part of the build wherever they are installed, used or not.
RECORDED_PACKAGES = ("diffusers", "timm", "torchao", "torchvision", "transformers")


def cpu_name() -> str | None:
    """The processor's name as /proc/cpuinfo gives it, else as Python does."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith(("model name", "Model")):
                return line.partition(":")[2].strip() or None
    except OSError:
        return platform.processor() or None
    return platform.processor() or platform.machine() or None


def ram_bytes() -> int | None:
    """The machine's memory; None where the system does not tell."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError):
        return None


def machine_facts(device: str, threads: int) -> dict[str, Any]:
    """`Machine` of the record. For a GPU torch is imported; its power limit is added by the runner, from
    NVML."""
    facts: dict[str, Any] = {
        "name": socket.gethostname(),
        "device": device.partition(":")[0],
        "device_name": cpu_name() or "unknown CPU",
        "device_count": None,
        "cpu_name": cpu_name(),
        "cpu_count": os.cpu_count(),
        "ram_bytes": ram_bytes(),
        "threads": threads,
    }
    if facts["device"] == "cuda":
        facts |= _gpu_facts(device)
    return facts


def _gpu_facts(device: str) -> dict[str, Any]:
    import torch

    properties = torch.cuda.get_device_properties(torch.device(device))
    uuid = getattr(properties, "uuid", None)
    return {
        "device": "hip" if torch.version.hip else "cuda",
        "device_name": properties.name,
        "device_count": 1,
        "device_uuid": None if uuid is None else f"GPU-{uuid}",
        "device_memory_bytes": properties.total_memory,
    }


def split_version(version: str) -> tuple[str, str | None]:
    """Release and local suffix of a torch version: "2.13.0+cpu" -> ("2.13.0", "cpu")."""
    release, _, local = version.partition("+")
    return release, local or None


def torch_variant(local: str | None, cuda: str | None, hip: str | None) -> str:
    """Which build of the release: its local suffix, else from what it was compiled against."""
    if local is not None:
        return local
    if hip:
        return "rocm" + ".".join(hip.split(".")[:2])
    return "cu" + cuda.replace(".", "") if cuda else "cpu"


def build_facts(device: str, settings: dict[str, Any]) -> dict[str, Any]:
    """`Build` of the record, as far as this process knows it; compiler and driver are added by the runner."""
    import torch

    release, local = split_version(torch.__version__)
    gpu = device.startswith("cuda")
    cudnn = torch.backends.cudnn.version() if gpu else None  # type: ignore[no-untyped-call]
    return {
        "torch": release,
        "torch_git": (torch.version.git_version or "")[:12] or None,
        "torch_variant": torch_variant(local, torch.version.cuda, torch.version.hip),
        "cuda": torch.version.cuda or torch.version.hip,
        "triton": _installed("triton") or _installed("pytorch-triton"),
        "cudnn": None if cudnn is None else str(cudnn),
        "python": platform.python_version(),
        "os": f"{platform.system()} {platform.release()}",
        "packages": {
            name: version for name in RECORDED_PACKAGES if (version := _installed(name)) is not None
        },
        "settings": settings
        | {"cpu_capability": _cpu_capability(), "compile_threads": compile_threads_of_a_script()},
    }


def _cpu_capability() -> str | None:
    import torch

    capability = getattr(torch.backends.cpu, "get_cpu_capability", None)
    return None if capability is None else str(capability())


def _installed(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
