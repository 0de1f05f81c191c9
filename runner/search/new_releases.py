"""Releases that the package index has and the build in use has not, each in an environment of its own."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from packaging.version import Version

from compilewatch.db.errors import CompilewatchError
from compilewatch.db.records.trial import Build
from compilewatch.db.units import size
from compilewatch.runner.config.settings import RELEASE_IN_TRIAL, THIS_INTERPRETER, BuildSettings, Settings
from compilewatch.runner.device.host import disk_room
from compilewatch.runner.plan.builds import (
    builds_directory,
    create_build,
    distinct_releases,
    offered_versions,
    only_one,
    remove_build,
    remove_temporary,
)
from compilewatch.runner.plan.cancellation import PreparationCancelledError, cancellable
from compilewatch.runner.plan.host_stacks import HostStacks

# Packages whose releases demand one release of torch: pip finds the one that fits.
_TIED_TO_TORCH = frozenset({"torchvision"})
_LOOK_EVERY_S = 2.0
_GB = 10**9


class ReleaseError(CompilewatchError):
    """A new release cannot be tried here."""


class Release(NamedTuple):
    """One release of a package, by its public version: "2.16.0rc2"."""

    package: str
    version: str

    def __str__(self) -> str:
        return f"{self.package} {self.version}"


class InUse(NamedTuple):
    """The build that a new release is compared with, and what a trial of it records."""

    build: BuildSettings
    stack: Build

    def version_of(self, package: str) -> str | None:
        """What is installed there; None where it is not."""
        of_stack = {"torch": self.stack.torch, "triton": self.stack.triton}
        return of_stack.get(package) or self.stack.packages.get(package)


def build_in_use(settings: Settings) -> InUse:
    """That of `[watch]`. Raises ReleaseError where there is none of that name, or it has no torch."""
    name = settings.watch.build or THIS_INTERPRETER
    for build, stack in HostStacks.read(settings).stacks:
        if build.name == name:
            return InUse(build, stack)
    raise ReleaseError(
        f"The build in use, {name}, is none of this host's or has no torch.",
        "Name a [[build]] as `build` of [watch].",
    )


def not_installed(settings: Settings, in_use: InUse) -> list[str]:
    """A sentence for each package of `[watch]` that the build in use does not have."""
    return [
        f"{package} is not installed in the build in use: no release of it is tried."
        for package in settings.watch.packages
        if in_use.version_of(package) is None
    ]


def newest_releases(settings: Settings, in_use: InUse) -> list[Release]:
    """Of each package of `[watch]` the newest release that its index offers, where that in use is older.

    A withdrawn one is not offered. Raises ReleaseError where there is none at all, BuildError where pip
    cannot say.
    """
    watch, found = settings.watch, []
    for package in watch.packages:
        installed = in_use.version_of(package)
        if installed is None:
            continue
        offered = offered_versions(Path(sys.executable), package, index_url=watch.index_url, early=watch.pre)
        releases = distinct_releases(offered)
        if not releases:
            # What is in use came from somewhere: pip says of an index that does not answer just this.
            raise ReleaseError(
                f"pip finds no release of {package} at all.", "Check index_url of [watch] and the network."
            )
        if releases[-1] > Version(installed):
            found.append(Release(package, str(releases[-1])))
    return found


def requirements_of(release: Release, in_use: InUse, further: tuple[str, ...]) -> list[str]:
    """What to install so that only `release` differs from the build in use, as far as pip allows it."""
    versions = {"torch": in_use.stack.torch} | in_use.stack.packages | {release.package: release.version}
    pinned = [
        name if name in _TIED_TO_TORCH and release.package == "torch" else f"{name}=={version}"
        for name, version in versions.items()
    ]
    return [*pinned, *further]


@contextlib.contextmanager
def only_here(settings: Settings) -> Iterator[None]:
    """While this host tries releases, no other process does; what a killed one left is removed.

    Raises ReleaseError where another does.
    """
    taken = ReleaseError("Another process tries new releases here.", "Wait for it to end.")
    with only_one(builds_directory(settings) / RELEASE_IN_TRIAL, taken):
        remove_temporary(settings)
        yield


@contextlib.contextmanager
def installed(
    release: Release, in_use: InUse, settings: Settings, *, seconds: float, should_stop: Callable[[], bool]
) -> Iterator[BuildSettings]:
    """The build of a release, removed at the end.

    Raises ReleaseError where making it takes longer than `seconds` or more room than `[watch]` allows,
    BuildError and InterpreterError as `create_build`, PreparationCancelledError once `should_stop`.
    """
    name = f"{RELEASE_IN_TRIAL}-{release.package}-{release.version}"
    limits = _Limits(builds_directory(settings) / name, settings, seconds)
    limits.require_room()
    try:
        with cancellable(lambda: should_stop() or limits.passed() is not None):
            made = create_build(
                requirements_of(release, in_use, settings.watch.requirements),
                settings,
                name=name,
                base=in_use.build.python,
                index_url=settings.watch.index_url,
                look_up=False,
                temporary=True,
            )
    except PreparationCancelledError:
        if (limit := limits.passed()) is not None:
            raise ReleaseError(f"{limit}.", "Raise the limit in [watch].") from None
        raise
    try:
        yield BuildSettings(name=made.name, python=made.python)
    finally:
        if made.facts.temporary:
            remove_build(name, settings)


class _Limits:
    """What making an environment may take; asked several times a second, it looks every other one."""

    def __init__(self, directory: Path, settings: Settings, seconds: float) -> None:
        self._directory = directory
        self._data_dir = settings.data_dir
        self._watch = settings.watch
        self._until = time.monotonic() + seconds
        self._look_at = 0.0
        self._limit: str | None = None

    def require_room(self) -> None:
        """Raise ReleaseError where the disk has less than the environment may take."""
        free, _ = disk_room(self._data_dir)
        if free is not None and free < self._watch.max_disk_gb * _GB:
            raise ReleaseError(
                f"{size(free)} are free, and max_disk_gb of [watch] allows {self._watch.max_disk_gb:g} GB.",
                "Free space, or lower max_disk_gb.",
            )

    def passed(self) -> str | None:
        """Which limit was passed, and stays so."""
        now = time.monotonic()
        if self._limit is None and now >= self._look_at:
            self._look_at = now + _LOOK_EVERY_S
            if now >= self._until:
                self._limit = f"installing took longer than max_hours ({self._watch.max_hours:g} h)"
            elif _bytes_of(self._directory) > self._watch.max_disk_gb * _GB:
                self._limit = f"its environment takes more than max_disk_gb ({self._watch.max_disk_gb:g} GB)"
        return self._limit


def _bytes_of(directory: Path) -> int:
    """What a directory that grows meanwhile takes on disk."""
    taken = 0
    for where, _, names in os.walk(directory):
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                taken += os.lstat(os.path.join(where, name)).st_blocks * 512  # noqa: PTH118
    return taken
