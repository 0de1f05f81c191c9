"""The source that a workload is made of: its builder's file, and the files of ours that this one shares."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from db.errors import ConfigError
from runner.workloads.targets import locate_module, split_target

_ROOM = "runner.workloads."
# What every builder returns. It computes nothing, so a change in it makes no other workload.
_RETURNED = "runner.workloads.built"


def source_of(target: str, path: tuple[str, ...] = ()) -> bytes:
    """The file that holds `target`, and after it, by name, each module below runner/workloads that it or
    one of those imports.

    A module of the user's own that the file imports is not followed: that is the code under measurement, and
    its history goes on when it changes. Raises ConfigError when a file cannot be found or read.
    """
    module = split_target(target)[0]
    own = _read(module, path)
    shared: dict[str, bytes] = {}
    waiting = [own]
    while waiting:
        for name in _shared_by(waiting.pop()):
            if name not in shared and name != module:
                shared[name] = _read(name, ())
                waiting.append(shared[name])
    return own + b"".join(b"\n# %b\n%b" % (name.encode(), shared[name]) for name in sorted(shared))


def _read(module: str, path: tuple[str, ...]) -> bytes:
    file: Path = locate_module(module, path)
    try:
        # A checkout with Windows line ends is the same workload.
        return file.read_bytes().replace(b"\r\n", b"\n")
    except OSError as error:
        raise ConfigError(
            f"The source of {module} cannot be read: {error.strerror}.",
            "Make the file readable; its hash is the workload's version.",
        ) from error


def _shared_by(source: bytes) -> Iterator[str]:
    """Modules below runner/workloads that `source` imports, wherever it does."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        # Whoever builds it is told the line; a file that cannot be read as Python imports nothing.
        return
    for node in ast.walk(tree):
        match node:
            case ast.ImportFrom(module=str(name), level=0):
                names = [name]
            case ast.Import(names=aliases):
                names = [alias.name for alias in aliases]
            case _:
                continue
        yield from (name for name in names if name.startswith(_ROOM) and name != _RETURNED)
