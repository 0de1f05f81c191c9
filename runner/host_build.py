"""What the runner adds to a build's facts: the C++ compiler the workers will find."""

from __future__ import annotations

import functools
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import PurePath

_VERSION = re.compile(r"\d+\.\d+(?:\.\d+)?")
_CANDIDATES = ("g++", "clang++")


def compiler_version(environment: Mapping[str, str]) -> str | None:
    """Name and version of the C++ compiler Inductor would use there, such as "g++ 12.2.0", or None."""
    named = environment.get("CXX")
    path = environment.get("PATH", "")
    for candidate in (named,) if named else _CANDIDATES:
        found = shutil.which(candidate, path=path)
        if found is not None:
            return _version_of(found)
    return None


@functools.cache
def _version_of(compiler: str) -> str | None:
    try:
        answer = subprocess.run(
            [compiler, "--version"], capture_output=True, text=True, timeout=20, check=False
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        return None
    # "g++ (Debian 12.2.0-14) 12.2.0": the last number of the first line is the compiler's own.
    numbers = _VERSION.findall(answer.partition("\n")[0])
    return f"{PurePath(compiler).name} {numbers[-1]}" if numbers else PurePath(compiler).name
