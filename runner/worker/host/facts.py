"""Facts of this machine and of this build of torch, as the record names them."""

from __future__ import annotations

import os
import platform
import socket
from importlib import metadata
from pathlib import Path
from typing import Any

from compilewatch.runner.worker.host import affinity

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
        | {"cpu_capability": _cpu_capability(), "compile_threads": affinity.compile_threads_of_a_script()},
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
