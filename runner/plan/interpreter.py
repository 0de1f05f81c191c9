"""Is there a torch behind this interpreter, and which? Asked of a child process, never by importing torch
here. And the environment of a measured process: an allow-list, its own caches, pinned settings."""

from __future__ import annotations

import functools
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compilewatch.db.errors import CompilewatchError
from compilewatch.runner.plan.cancellation import run_child

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


MIN_PYTHON = (3, 10)
MIN_TORCH = (2, 6)
_TIMEOUT_S = 120.0

_PROBE = """
import json, platform, sys
facts = {"python": platform.python_version(), "executable": sys.executable, "torch": None, "error": None}
try:
    import torch
    cuda = torch.cuda.is_available()
    facts |= {"torch": torch.__version__, "cuda": torch.version.cuda, "hip": torch.version.hip,
              "cuda_available": cuda, "device_count": torch.cuda.device_count() if cuda else 0}
except Exception as error:
    facts["error"] = f"{type(error).__name__}: {error}"
sys.stdout.write("\\n" + json.dumps(facts) + "\\n")
"""


class InterpreterError(CompilewatchError):
    """The interpreter is missing, too old, or has no torch that can be measured."""


@dataclass(frozen=True)
class InterpreterFacts:
    """What a Python interpreter can measure."""

    path: str
    python: str
    torch: str
    """With the local suffix, as `torch.__version__` says it."""
    cuda: str | None
    hip: str | None
    device_count: int
    """GPUs it can use; 0 where there is none or no driver."""


def answer_of(python: str, program: str, *arguments: str, timeout_s: float) -> Any:
    """The JSON that `program` prints under this interpreter.

    Raises OSError, subprocess.SubprocessError or ValueError where it does not answer.
    """
    command = [python, "-I", "-c", program, *arguments]
    finished = run_child(command, env=probing_environment(), timeout_s=timeout_s)
    finished.check_returncode()
    return json.loads(finished.stdout)


def _version(text: str) -> tuple[int, ...]:
    numbers = text.partition("+")[0].split(".")[:2]
    return tuple(int(part) for part in numbers if part.isdigit())


def _probe(path: str) -> dict[str, Any]:
    try:
        finished = run_child([path, "-I", "-c", _PROBE], env=probing_environment(), timeout_s=_TIMEOUT_S)
    except FileNotFoundError:
        raise InterpreterError(
            f"There is no interpreter at {path}.", "Give the path of a python with torch installed."
        ) from None
    except OSError as error:
        raise InterpreterError(
            f"The interpreter {path} cannot be started: {error.strerror}.",
            "Give the path of a python with torch installed.",
        ) from error
    except subprocess.TimeoutExpired as error:
        raise InterpreterError(
            f"The interpreter {path} did not answer within {_TIMEOUT_S:g} s.", "Check that it imports torch."
        ) from error
    try:
        facts = json.loads(finished.stdout.strip().splitlines()[-1])
    except (IndexError, ValueError):
        facts = None
    if not isinstance(facts, dict) or "torch" not in facts:
        raise InterpreterError(
            f"{path} is not a Python interpreter that works (exit code {finished.returncode}).",
            "Give the path of a python with torch installed.",
        )
    return facts


@functools.cache
def check_interpreter(path: str = sys.executable) -> InterpreterFacts:
    """Facts of the interpreter at `path`. Imports its torch once, in a child process.

    Raises InterpreterError: not there, not Python, no torch, or one too old to be measured.
    """
    facts = _probe(shutil.which(path) or path)
    if _version(facts["python"]) < MIN_PYTHON:
        raise InterpreterError(
            f"The interpreter {path} is Python {facts['python']}, and the worker needs 3.10.",
            "Install torch into a newer Python.",
        )
    if facts["torch"] is None:
        missing = "No module named 'torch'" in (facts["error"] or "")
        reason = "has no torch" if missing else f"cannot import torch ({facts['error']})"
        raise InterpreterError(
            f"The interpreter {path} {reason}.",
            f"Install it with `{path} -m pip install torch`, or give another interpreter.",
        )
    if _version(facts["torch"]) < MIN_TORCH:
        raise InterpreterError(
            f"The interpreter {path} has torch {facts['torch']}, and the oldest that is measured is 2.6.",
            f"Upgrade it with `{path} -m pip install --upgrade torch`.",
        )
    known = ("python", "torch", "cuda", "hip", "device_count")
    return InterpreterFacts(path=path, **{name: facts[name] for name in known})
