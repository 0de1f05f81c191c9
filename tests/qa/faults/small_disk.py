"""A disk of its own for a directory, that can be full and read-only; needs root and the right to mount."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest


@dataclass(frozen=True)
class SmallDisk:
    directory: Path

    @contextlib.contextmanager
    def full(self) -> Iterator[None]:
        """No block is free until the block ends."""
        ballast = self.directory / ".ballast"
        with contextlib.suppress(OSError), ballast.open("wb", buffering=0) as file:
            while True:
                file.write(b"x" * 4096)
        try:
            yield
        finally:
            ballast.unlink()

    @contextlib.contextmanager
    def read_only(self) -> Iterator[None]:
        _mount("-o", "remount,ro", str(self.directory))
        try:
            yield
        finally:
            _mount("-o", "remount,rw", str(self.directory))


@contextlib.contextmanager
def small_disk(directory: Path, size: str) -> Iterator[SmallDisk]:
    directory.mkdir(parents=True, exist_ok=True)
    try:
        _mount("-t", "tmpfs", "-o", f"size={size}", "none", str(directory))
    except subprocess.CalledProcessError:
        pytest.skip("mounting a small file system needs root and the right to mount")
    try:
        yield SmallDisk(directory)
    finally:
        subprocess.run(["umount", "--lazy", str(directory)], check=True)


def _mount(*arguments: str) -> None:
    subprocess.run(["mount", *arguments], check=True, capture_output=True)
