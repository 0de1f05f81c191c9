"""The environment of a measured process: an allow-list, its own caches, pinned settings."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

# Everything else (PYTHONPATH, VIRTUAL_ENV, TORCH*, tokens) would let two runs of one build differ, or leak.
# What a suite needs beyond this it names in `worker_env`, which is recorded.
_ALLOWED = frozenset(
    {
        *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "TZ", "CC", "CXX"),
        *("CUDA_VISIBLE_DEVICES", "CUDA_HOME", "CUDA_PATH"),
        *("NVIDIA_VISIBLE_DEVICES", "NVIDIA_DRIVER_CAPABILITIES"),
        *("HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "ROCM_PATH", "ROCM_HOME"),
    }
)
_ALLOWED_PREFIX = "LC_"
# Without them a driver, or the server that shares a GPU, is not found, or another allocator is in force.
_RECORDED = frozenset({"LD_LIBRARY_PATH", "LD_PRELOAD"})
_RECORDED_PREFIX = "CUDA_MPS_"

BINDING = ("OMP_PROC_BIND", "OMP_PLACES")
"""What pins the threads of a process to cores, for the steps that are timed."""

# Inductor, Triton and the CUDA driver each keep a cache; the precompiled header follows TMPDIR alone
# (torch/_inductor/codecache.py, _HEADER_DIR), so a cold start needs all four to be empty.
_CACHE_DIRECTORIES = {
    "TORCHINDUCTOR_CACHE_DIR": "inductor",
    "TRITON_CACHE_DIR": "triton",
    "CUDA_CACHE_PATH": "cuda",
    "TMPDIR": "tmp",
}


def pinned_settings(threads: int) -> dict[str, str]:
    """Variables every measured process gets, whatever the host: part of what is measured."""
    return {
        "OMP_NUM_THREADS": str(threads),
        "OMP_PROC_BIND": "true",
        "OMP_PLACES": "cores",
        "HF_HUB_OFFLINE": "1",
        "TOKENIZERS_PARALLELISM": "false",
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
    }


def passed_on(inherited: Mapping[str, str] | None = None) -> dict[str, str]:
    """What a measured process has of this one's environment and `build.settings` says."""
    source = os.environ if inherited is None else inherited
    return {
        name: value
        for name, value in source.items()
        if name in _RECORDED or name.startswith(_RECORDED_PREFIX)
    }


def probing_environment() -> dict[str, str]:
    """What an interpreter is asked in: as a measured process has it, without what is pinned."""
    return _allowed(os.environ)


def _allowed(source: Mapping[str, str]) -> dict[str, str]:
    allowed = {
        name: value for name, value in source.items() if name in _ALLOWED or name.startswith(_ALLOWED_PREFIX)
    }
    return allowed | passed_on(source)


def recorded_environment(worker_env: Mapping[str, str]) -> dict[str, str]:
    """What `build.settings` says of the environment: what is pinned, with the suite's `worker_env`.

    Without the number of threads, which the machine's record has.
    """
    pinned = {name: value for name, value in pinned_settings(0).items() if name != "OMP_NUM_THREADS"}
    return pinned | dict(worker_env)


def worker_environment(
    scratch: Path, *, threads: int, extra: Mapping[str, str], inherited: Mapping[str, str] | None = None
) -> dict[str, str]:
    """The whole environment of one measured process; creates its empty directories below `scratch`."""
    source = os.environ if inherited is None else inherited
    environment = _allowed(source)
    # torch names its default cache directory after the user and fails for a uid without a name.
    environment.setdefault("USER", "compilewatch")
    environment.setdefault("HOME", str(scratch))
    environment |= pinned_settings(threads)
    for variable, directory in _CACHE_DIRECTORIES.items():
        path = scratch / directory
        path.mkdir(parents=True, exist_ok=True)
        environment[variable] = str(path)
    return environment | dict(extra)
