"""What `doctor` looks at: torch, compiler, places on disk, database and clock; the processor, the container's
share of it, other load, and the GPU's settings and users.
"""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import psutil
import pynvml

from compilewatch.db.engine.session import open_database
from compilewatch.db.errors import CompilewatchError, DatabaseError
from compilewatch.db.records.strategies import BUILTIN, not_applicable_reason
from compilewatch.db.units import percent, plural, size
from compilewatch.runner.config.settings import Settings
from compilewatch.runner.device.host import MIN_FREE_BYTES, existing_part
from compilewatch.runner.device.state import (
    device_facts,
    ecc_is_on,
    nvml_handle,
    nvml_query,
    nvml_watts,
    whole_device,
)
from compilewatch.runner.plan.host_stacks import compiler_version
from compilewatch.runner.plan.interpreter import InterpreterFacts
from compilewatch.runner.process.spool import Spool
from compilewatch.runner.worker.step.host import cpu_name
from compilewatch.runner.worker.timing.evidence import MAX_STALL_FRACTION, InstructionCounter, cpu_stall_ns

_WARN_BYTES = 2 * 2**30


def torch_finding(facts: InterpreterFacts | CompilewatchError) -> DoctorFinding:
    """The torch of this interpreter, and the device it can use."""
    if isinstance(facts, CompilewatchError):
        return fail("torch", facts.message.rstrip("."), facts.next_step)
    built_for = f"CUDA {facts.cuda}" if facts.cuda else f"ROCm {facts.hip}" if facts.hip else "the CPU"
    devices = plural(facts.device_count, "GPU") if facts.device_count else "no GPU"
    return ok("torch", f"{facts.torch} for {built_for}, Python {facts.python}, {devices}")


def compiler_finding(environment: Mapping[str, str] = os.environ) -> DoctorFinding:
    """The C++ compiler that Inductor needs, on a GPU too."""
    compiler = compiler_version(environment)
    if compiler is None:
        return fail("compiler", "no C++ compiler on the PATH", "Install one (Debian: apt-get install g++).")
    return ok("compiler", compiler)


def headers_finding(include: Path = Path(sysconfig.get_path("include"))) -> DoctorFinding:  # noqa: B008
    """The headers of this Python: Inductor's kernels for a CPU and Triton's launchers include `Python.h`."""
    if not (include / "Python.h").is_file():
        package = f"python{sys.version_info.major}.{sys.version_info.minor}-dev"
        return fail(
            "Python headers",
            f"no Python.h in {include}",
            f"Install them (Debian: apt-get install {package}).",
        )
    return ok("Python headers", str(include))


def place_finding(subject: str, directory: Path, *, runs_code: bool) -> DoctorFinding:
    """Whether `directory` can be written, has room, and, for compiled kernels, lets them be loaded."""
    existing = existing_part(directory)
    if not os.access(existing, os.W_OK | os.X_OK):
        return fail(subject, f"{directory} cannot be written", "Make it writable, or name another directory.")
    if runs_code and os.statvfs(existing).f_flag & os.ST_NOEXEC:
        return fail(
            subject, f"{directory} is mounted noexec, so no kernel loads from it", "Set TMPDIR elsewhere."
        )
    free = shutil.disk_usage(existing).free
    fact = f"{directory}, {size(free)} free"
    if free < MIN_FREE_BYTES:
        return fail(subject, fact, "Free space, or name a directory on another disk.")
    if free < _WARN_BYTES:
        return warn(subject, fact, "A cold compilation may fill it; free space.")
    return ok(subject, fact)


def spool_finding(settings: Settings) -> DoctorFinding:
    """Trials on disk that the database has not got yet."""
    spool = Spool(settings.data_dir / "spool")
    waiting, bad = len(spool.waiting()), len(list(spool.directory.glob("bad/*.json")))
    if bad:
        return warn(
            "spool",
            f"{plural(bad, 'trial')} set aside, {waiting} waiting",
            f"Each has its reason beside it in {spool.directory / 'bad'}.",
        )
    if waiting:
        return warn(
            "spool", f"{plural(waiting, 'trial')} waiting", "The next `compilewatch run` stores them."
        )
    return ok("spool", "no trial waits for the database")


def database_finding(settings: Settings) -> DoctorFinding:
    """Whether the configured database opens and has this release's schema."""
    url = settings.database_url
    name = url.partition("sqlite:///")[2]
    if name and not Path(name).exists():
        return ok("database", f"{name} is not there yet", "The first `compilewatch run` creates it.")
    try:
        with open_database(url, read_only=True) as database:
            return ok("database", f"{database.url} has this release's schema")
    except DatabaseError as error:
        # What only has to be upgraded keeps nothing from being measured: a run upgrades it.
        standing = warn if "db upgrade" in error.next_step else fail
        return standing("database", error.message.rstrip("."), error.next_step)


def time_finding() -> DoctorFinding:
    """The zone in which schedules are written; records are in UTC whatever it is."""
    here = time.localtime()
    hours = (here.tm_gmtoff or 0) / 3600
    return ok("time zone", f"{here.tm_zone} (UTC{hours:+g}); trials are stored in UTC")


def software_findings(settings: Settings, facts: InterpreterFacts | CompilewatchError) -> list[DoctorFinding]:
    """Everything that is installed or configured."""
    configuration = settings.config_file
    return [
        torch_finding(facts),
        compiler_finding(),
        headers_finding(),
        place_finding("cache directory", Path(tempfile.gettempdir()), runs_code=True),
        place_finding("data directory", settings.data_dir.absolute(), runs_code=False),
        ok("configuration", str(configuration) if configuration else "defaults; no compilewatch.toml here"),
        database_finding(settings),
        spool_finding(settings),
        time_finding(),
        ok("interpreter", sys.executable),
    ]


class Standing(StrEnum):
    """`warn`: figures may be noisier or fewer than they could be. `fail`: nothing can be measured."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True)
class DoctorFinding:
    """`fact` is one phrase without a full stop; `next_step` is empty where there is nothing to do."""

    subject: str
    standing: Standing
    fact: str
    next_step: str = ""


def ok(subject: str, fact: str, next_step: str = "") -> DoctorFinding:
    """Nothing to do, unless `next_step` says what would still help."""
    return DoctorFinding(subject, Standing.OK, fact, next_step)


def warn(subject: str, fact: str, next_step: str) -> DoctorFinding:
    """Measuring works, and something makes its figures worse or unknown."""
    return DoctorFinding(subject, Standing.WARN, fact, next_step)


def fail(subject: str, fact: str, next_step: str) -> DoctorFinding:
    """Nothing can be measured or stored before this is mended."""
    return DoctorFinding(subject, Standing.FAIL, fact, next_step)


_ROOT = Path("/")
_PROBE_S = 1.0
_MIN_RAM_BYTES = 2 * 2**30
# Contexts of the driver and a display take some; a process that computes takes more.
_IDLE_GPU_BYTES = 1 * 2**30


def cpu_finding() -> DoctorFinding:
    """The processor, and how much of it this process may use."""
    all_of_it, usable = os.cpu_count() or 1, len(os.sched_getaffinity(0))
    fact = f"{cpu_name() or 'unknown'}, {usable} of {plural(all_of_it, 'CPU')}"
    if usable < 2:
        return warn(
            "processor", fact, "With one CPU every other process stops the measured one; give it two."
        )
    return ok("processor", fact)


def quota_finding(root: Path = _ROOT) -> DoctorFinding:
    """The container's CPU limit (cgroup v2 cpu.max, v1 cfs_quota): threads beyond it are stopped in turns."""
    quota = _quota_cpus(root)
    if quota is None:
        return ok("CPU limit", "none, or not visible here")
    usable = len(os.sched_getaffinity(0))
    fact = f"{quota:g} CPUs of {usable}"
    if quota < usable:
        return warn(
            "CPU limit", fact, f"Set run.threads to {max(1, int(quota) - 1)}, or lift the container's limit."
        )
    return ok("CPU limit", fact)


def _quota_cpus(root: Path) -> float | None:
    second = _read(root / "sys/fs/cgroup/cpu.max").split()
    if len(second) == 2 and second[0].isdigit():
        return int(second[0]) / int(second[1])
    quota = _read(root / "sys/fs/cgroup/cpu/cpu.cfs_quota_us")
    period = _read(root / "sys/fs/cgroup/cpu/cpu.cfs_period_us")
    return int(quota) / int(period) if quota.isdigit() and period.isdigit() else None


def governor_finding(root: Path = _ROOT) -> DoctorFinding:
    """How the processor chooses its clock."""
    governor = _read(root / "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
    if not governor:
        return ok("CPU governor", "not visible here, as in most virtual machines")
    if governor != "performance":
        return warn(
            "CPU governor",
            f"{governor}: the clock follows the load",
            "For steadier CPU figures: cpupower frequency-set -g performance",
        )
    return ok("CPU governor", governor)


def load_finding() -> DoctorFinding:
    """What else runs, looked at for a second: tasks that waited for a CPU, else the share that was busy."""
    before = cpu_stall_ns()
    busy = psutil.cpu_percent(_PROBE_S) / 100
    after = cpu_stall_ns()
    stalled = None if before is None or after is None else (after - before) / (_PROBE_S * 1e9)
    waited = "" if stalled is None else f", tasks waited {percent(stalled)} of the time"
    fact = f"CPUs {percent(busy)} busy{waited}"
    if busy > 0.5 or (stalled is not None and stalled > MAX_STALL_FRACTION):
        return warn("other load", fact, "Measure when nothing else runs; disturbed samples are marked.")
    return ok("other load", fact)


def memory_finding() -> DoctorFinding:
    """Whether a process that compiles has room."""
    memory = psutil.virtual_memory()
    fact = f"{size(memory.available)} of {size(memory.total)} available"
    if memory.available < _MIN_RAM_BYTES:
        return warn("memory", fact, "A compiling process needs up to 2 GiB; end what uses the rest.")
    return ok("memory", fact)


def instructions_finding() -> DoctorFinding:
    """Whether the kernel counts instructions, the calmest unit of what compiling costs."""
    try:
        InstructionCounter().close()
    except OSError as error:
        why = f"not counted here ({error.strerror or error}); CPU time of the compilation is stored"
        return ok("instructions", why)
    return ok("instructions", "counted")


def gpu_findings(setup: DeviceSetup | None, torch_sees: int | None) -> list[DoctorFinding]:
    """The first GPU as NVML sees it. `torch_sees`: GPUs that torch can use, None when torch does not work."""
    if setup is None:
        return [_without_gpu(torch_sees)]
    findings = [ok("GPU", f"{setup.name or 'unknown'}, driver {setup.driver or 'unknown'}")]
    if torch_sees == 0:
        findings = [
            warn(
                "GPU",
                f"{findings[0].fact}, and torch cannot use it",
                "Install a CUDA build of torch that this driver supports.",
            )
        ]
    return [*findings, _persistence(setup), _power(setup), _clocks(setup), _partition(setup), _users(setup)]


def _without_gpu(torch_sees: int | None) -> DoctorFinding:
    if torch_sees:
        return warn(
            "GPU",
            "torch sees one, NVML does not",
            "Clocks, power and throttling will be unknown (AMD, or no NVML).",
        )
    idle = [name for name, each in BUILTIN.items() if not_applicable_reason(each, "cpu")]
    return ok("GPU", f"none; not measured on a CPU: {', '.join(idle)}")


def _persistence(setup: DeviceSetup) -> DoctorFinding:
    if setup.persistence is None:
        return ok("persistence mode", "unknown")
    if not setup.persistence:
        return warn(
            "persistence mode", "off: each process pays for waking the driver", "As root: nvidia-smi -pm 1"
        )
    return ok("persistence mode", "on")


def _power(setup: DeviceSetup) -> DoctorFinding:
    limit, default = setup.power_limit_w, setup.power_default_w
    if limit is None:
        return ok("power cap", "unknown")
    if default is not None and limit < default:
        return warn(
            "power cap",
            f"{limit:g} W, below the default of {default:g} W",
            "Fine if it stays so: it is part of the machine's identity. Else: nvidia-smi -pl",
        )
    return ok("power cap", f"{limit:g} W")


def _clocks(setup: DeviceSetup) -> DoctorFinding:
    if setup.sm_clock_mhz is None or setup.sm_clock_max_mhz is None:
        return ok("clocks", "unknown")
    return ok(
        "clocks",
        f"SM at {setup.sm_clock_mhz} of {setup.sm_clock_max_mhz} MHz now",
        "For steadier figures, as root: nvidia-smi --lock-gpu-clocks",
    )


def _partition(setup: DeviceSetup) -> DoctorFinding:
    ecc = "unknown" if setup.ecc is None else "on" if setup.ecc else "off"
    if setup.mig:
        return warn(
            "partitions",
            f"MIG is on, ECC {ecc}",
            "Name the partition by UUID in CUDA_VISIBLE_DEVICES; power and clocks may be unknown.",
        )
    return ok("partitions", f"MIG {'unknown' if setup.mig is None else 'off'}, ECC {ecc}")


def _users(setup: DeviceSetup) -> DoctorFinding:
    used, busy = setup.memory_used_bytes, setup.utilization_percent
    fact = f"{size(used)} in use, {busy if busy is not None else 'unknown'} % busy"
    # In a container NVML lists no process of others, so memory and utilization have to speak for them.
    if setup.processes or (used or 0) > _IDLE_GPU_BYTES or (busy or 0) > 5:
        return warn(
            "other users of the GPU",
            f"{fact}, {setup.processes or 0} process{'' if setup.processes == 1 else 'es'} listed",
            "Measure when it is free; trials beside other work are marked suspect.",
        )
    return ok("other users of the GPU", fact)


def hardware_findings(torch_sees: int | None) -> list[DoctorFinding]:
    """Everything about the machine itself; takes a second."""
    return [
        cpu_finding(),
        quota_finding(),
        governor_finding(),
        load_finding(),
        memory_finding(),
        instructions_finding(),
        *gpu_findings(device_setup("cuda:0"), torch_sees),
    ]


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except OSError:
        return ""


@dataclass(frozen=True)
class DeviceSetup:
    """Settings that change speed, and signs of other users, of one GPU at this moment."""

    name: str | None
    driver: str | None
    persistence: bool | None
    power_limit_w: float | None
    power_default_w: float | None
    sm_clock_mhz: int | None
    sm_clock_max_mhz: int | None
    ecc: bool | None
    mig: bool | None
    utilization_percent: int | None
    memory_used_bytes: int | None
    processes: int | None
    """Compute processes that NVML lists; in a container it may list none where there are some."""


def device_setup(device: str) -> DeviceSetup | None:
    """The setup of "cuda:N"; None for a CPU or without a driver."""
    handle = nvml_handle(device)
    if handle is None:
        return None
    facts, whole = device_facts(device), whole_device(handle)
    persistence = nvml_query("nvmlDeviceGetPersistenceMode", whole)
    mig = nvml_query("nvmlDeviceGetMigMode", whole)
    rates = nvml_query("nvmlDeviceGetUtilizationRates", handle)
    memory = nvml_query("nvmlDeviceGetMemoryInfo", handle)
    running = nvml_query("nvmlDeviceGetComputeRunningProcesses", handle)
    return DeviceSetup(
        name=facts.name,
        driver=facts.driver,
        persistence=None if persistence is None else bool(persistence),
        power_limit_w=facts.power_limit_w,
        power_default_w=nvml_watts("nvmlDeviceGetPowerManagementDefaultLimit", whole),
        sm_clock_mhz=nvml_query("nvmlDeviceGetClockInfo", whole, pynvml.NVML_CLOCK_SM),
        sm_clock_max_mhz=nvml_query("nvmlDeviceGetMaxClockInfo", whole, pynvml.NVML_CLOCK_SM),
        ecc=ecc_is_on(whole),
        mig=None if mig is None else bool(mig[0]),
        utilization_percent=None if rates is None else int(rates.gpu),
        memory_used_bytes=None if memory is None else int(memory.used),
        processes=None if running is None else len(running),
    )
