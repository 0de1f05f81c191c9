"""Fills the caches of torch.compile from `caches.zip` beside this file. Needs torch and nothing else.

Before anything is compiled, and with the threads and the matmul precision set that the program uses:

    from load_caches import load_caches
    load_caches()

Before a roll-out, on each host: `python load_caches.py [DEVICE]` says what of the host differs, and exits
with 1 where anything does.

`caches.zip` holds compiled code: trust this directory as you trust code.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import platform
import subprocess
import sys
import zipfile
from importlib import metadata
from pathlib import Path
from typing import Any

import torch

CACHES, VALID_FOR = "caches.zip", "valid_for.json"
ARTIFACTS, LIBRARIES = "artifacts", "inductor/"


class CacheRefusedError(RuntimeError):
    """The caches are not for this process, and nothing of them was loaded; the message is one sentence."""


def load_caches(directory: Path = Path(__file__).parent, device: str | None = None) -> None:
    """Fill the caches of this process and `TORCHINDUCTOR_CACHE_DIR` from `directory`.

    `device` is "cpu" or a GPU such as "cuda:0"; by default the first GPU if there is one. Raises
    CacheRefusedError where the files are missing, damaged, or made for something else. Then torch.compile
    compiles as without them.
    """
    content, valid_for = _read(directory)
    refusal = _refusal(valid_for, surroundings(device or _device()))
    if refusal is not None:
        raise CacheRefusedError(refusal)
    load = getattr(torch.compiler, "load_cache_artifacts", None)
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        if load is None or load(archive.read(ARTIFACTS)) is None:
            raise CacheRefusedError(
                f"torch {torch.__version__} cannot load {CACHES}: run precompile.py here."
            )
        for name in archive.namelist():
            file = Path(cache_directory(), name.removeprefix(LIBRARIES))
            if name.startswith(LIBRARIES) and not file.exists():
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(archive.read(name))


def check(directory: Path = Path(__file__).parent, device: str | None = None) -> str | None:
    """What of this host the caches of `directory` are not for, in one sentence; None where they are for it.

    The threads and the matmul precision are not compared: the program sets them, not the host.
    """
    try:
        valid_for = _read(directory)[1]
    except CacheRefusedError as error:
        return str(error)
    here = surroundings(device or _device())
    return _refusal(*({k: v for k, v in each.items() if k not in _OF_PROGRAM} for each in (valid_for, here)))


def _device() -> str:
    return "cuda:0" if torch.cuda.is_available() else "cpu"


def _refusal(valid_for: dict[str, str], here: dict[str, str]) -> str | None:
    wanted = sorted({**dict.fromkeys(here, "none"), **valid_for}.items())
    others = {name: value for name, value in wanted if value != here.get(name, "none")}
    if not others:
        return None
    named = [f"{name} {value} (here {here.get(name, 'none')})" for name, value in others.items()]
    settings = [setting(name, value) for name, value in others.items()]
    steps = [step for step in settings if step is not None]
    way_out = "run precompile.py here" if len(steps) < len(settings) else f"{' and '.join(steps)} first"
    return f"These caches are for {', '.join(named)}: {way_out}."


def _read(directory: Path) -> tuple[bytes, dict[str, str]]:
    """The caches of `directory`, whole, and what they are valid for."""
    again = "run precompile.py again."
    try:
        content, valid_for = (
            (directory / CACHES).read_bytes(),
            json.loads((directory / VALID_FOR).read_bytes()),
        )
        expected, facts = valid_for["sha256"], dict(valid_for["surroundings"])
    except OSError as error:
        raise CacheRefusedError(f"{error.filename} cannot be read ({error.strerror}): {again}") from error
    except (ValueError, TypeError, KeyError) as error:
        raise CacheRefusedError(f"{directory / VALID_FOR} is damaged: {again}") from error
    if hashlib.sha256(content).hexdigest() != expected or not _is_archive(content):
        raise CacheRefusedError(f"{directory / CACHES} is damaged, or not the one of {VALID_FOR}: {again}")
    return content, facts


def _is_archive(content: bytes) -> bool:
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            return ARTIFACTS in archive.namelist()
    except zipfile.BadZipFile:
        return False


def cache_directory() -> Path:
    """Where Inductor keeps its caches in this process."""
    # Here in every release since 2.6; where it is defined has changed.
    from torch._inductor.codecache import cache_dir  # type: ignore[attr-defined]

    return Path(cache_dir())


# They change where something is written, or how fast, and not what is compiled.
_WITHOUT_EFFECT = ("TORCHINDUCTOR_CACHE_DIR", "TORCHINDUCTOR_COMPILE_THREADS", "TRITON_CACHE_DIR")
_OF_PROGRAM = ("threads", "matmul precision")
_COMPILER_VARIABLES = ("TORCHINDUCTOR_", "TORCHDYNAMO_", "TRITON_")


def surroundings(device: str) -> dict[str, str]:
    """What the compiled code of this process depends on, by name; only what is there."""
    facts: dict[str, Any] = {
        "torch": torch.__version__,
        "CUDA": torch.version.cuda,
        "ROCm": torch.version.hip,
        "Triton": _installed("triton") or _installed("pytorch-triton"),
        "Python": ".".join(platform.python_version_tuple()[:2]),
        "architecture": platform.machine(),
        "matmul precision": torch.get_float32_matmul_precision(),
    }
    if device == "cpu":
        capability = getattr(torch.backends.cpu, "get_cpu_capability", None)
        facts |= {"device": "cpu", "threads": torch.get_num_threads(), "compiler": _compiler()}
        facts["CPU capability"] = None if capability is None else capability()
    else:
        properties = torch.cuda.get_device_properties(torch.device(device))
        facts |= {"device": properties.name, "compute capability": f"{properties.major}.{properties.minor}"}
    facts |= {
        name: value
        for name, value in os.environ.items()
        if name.startswith(_COMPILER_VARIABLES) and name not in _WITHOUT_EFFECT
    }
    return {name: str(value) for name, value in facts.items() if value is not None}


def setting(name: str, value: str) -> str | None:
    """What gives a process the fact `name` of `surroundings`; None where it takes another host or build."""
    if name == "matmul precision":
        return f"torch.set_float32_matmul_precision({value!r})"
    if name == "threads":
        return f"torch.set_num_threads({value})"
    if name.startswith(_COMPILER_VARIABLES):
        return f"unset {name}" if value == "none" else f"set {name}={value}"
    return None


def _compiler() -> str | None:
    """The C++ compiler that Inductor calls, with its version; None where it finds none."""
    try:
        from torch._inductor.cpp_builder import get_cpp_compiler

        command = [str(get_cpp_compiler()), "--version"]
        answer = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True)
    except Exception:  # noqa: BLE001 - torch raises one of its own where there is no compiler
        return None
    return answer.stdout.partition("\n")[0] or None


def _installed(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


if __name__ == "__main__":
    differs = check(device=sys.argv[1] if sys.argv[1:] else None)
    print(f"{platform.node()}: {differs or 'these caches are for this host.'}")  # noqa: T201
    sys.exit(int(differs is not None))
