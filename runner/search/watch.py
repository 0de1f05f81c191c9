"""`[watch]`: finds each new release in the package index, measures it in an environment of its own beside the
build in use, freezes what it shows, and sends one message.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from packaging.version import Version

from compilewatch.db.engine.session import Database
from compilewatch.db.errors import CompilewatchError, DatabaseError
from compilewatch.db.judge.compare.recorded_regressions import events_of_rows
from compilewatch.db.judge.compare.sides import Selection, VerdictError
from compilewatch.db.judge.decide import MOVED
from compilewatch.db.judge.results import Comparison, Row
from compilewatch.db.judge.sentences import besides, tallied
from compilewatch.db.queries.run_parts import run_parts
from compilewatch.db.records.ids import identity
from compilewatch.db.records.trial import Build
from compilewatch.db.records.vocabulary import Verdict
from compilewatch.db.service.reports import reports_frame
from compilewatch.db.units import duration, plural, size
from compilewatch.db.verdicts import gateway
from compilewatch.runner.config.settings import RELEASE_IN_TRIAL, THIS_INTERPRETER, BuildSettings, Settings
from compilewatch.runner.device.host import disk_room
from compilewatch.runner.plan.builds import (
    builds_directory,
    create_build,
    distinct_releases,
    interpreter_facts,
    offered_versions,
    only_one,
    remove_build,
    remove_temporary,
)
from compilewatch.runner.plan.cancellation import PreparationCancelledError, cancellable
from compilewatch.runner.plan.durations import plan_s
from compilewatch.runner.plan.host_stacks import HostStacks
from compilewatch.runner.plan.plan import Plan, plan_request, plan_run
from compilewatch.runner.plan.selection import resolve_device
from compilewatch.runner.process.execution import RunOutcome
from compilewatch.runner.regressions.confirmation import confirmation_plan
from compilewatch.runner.regressions.log import compare_runs, log_builds
from compilewatch.runner.regressions.notify import Message, address, row_line, send, upgrade_address
from compilewatch.runner.search.environments import MeasuringInterruptedError, disk_words

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


SCHEMA = "compilewatch.release/1"
_S_PER_HOUR = 3600.0


@dataclass(frozen=True)
class Tried:
    """What became of a release: its sentence, and the report of it; None where it was not measured."""

    release: Release
    text: str
    report_id: str | None


@dataclass(frozen=True)
class Means:
    """How the process that tries releases measures a plan within seconds, freezes a page under a title, waits
    between two tries of a message, and hears that it is to stop.
    """

    measure: Callable[[Plan, float], RunOutcome]
    freeze: Callable[[str, str], str]
    say: Callable[[str], None]
    should_stop: Callable[[], bool] = lambda: False
    pause: Callable[[float], object] = time.sleep


def new_releases(database: Database, settings: Settings, in_use: InUse, *, by: str) -> list[Release]:
    """Those that nobody has tried yet who signs reports as `by`. Raises as `newest_releases`."""
    reports = reports_frame(database)
    titles = [str(title) for title in reports["title"][reports["created_by"] == by]]
    found = newest_releases(settings, in_use)
    return [each for each in found if not any(title.startswith(f"{each} on ") for title in titles)]


def before(database: Database, settings: Settings, release: Release, in_use: InUse) -> list[str]:
    """What trying it takes at most, in sentences."""
    plan = _plan(settings, [in_use.build, in_use.build])
    room = disk_words(1, in_use.build.python, settings)
    watch, against = settings.watch, in_use.version_of(release.package)
    trials, about = plural(len(plan.trials), "trial"), duration(round(plan_s(database, plan)) * 1e9)
    return [
        f"{release} against {against}: {trials}, about {about}, then fresh trials of what seems slower; "
        f"at most {watch.max_hours:g} h with installing.",
        f"{room} max_disk_gb allows {watch.max_disk_gb:g} GB; it is removed at the end.",
    ]


def try_releases(
    database: Database, settings: Settings, releases: Sequence[Release], in_use: InUse, means: Means
) -> Iterator[Tried]:
    """Install, measure, judge, freeze and tell each release, one after the other.

    One that cannot be installed or measured is told as that. Raises ReleaseError where another process
    does this here, MeasuringInterruptedError or PreparationCancelledError once it is to stop.
    """
    with only_here(settings):
        for release in releases:
            try:
                tried, moved = _try(database, settings, release, in_use, means)
            except DatabaseError:
                raise
            except CompilewatchError as error:
                tried, moved = Tried(release, f"{release} could not be tried: {error.message}", None), ()
            _tell(tried, moved, settings, means)
            yield tried


def _try(
    database: Database, settings: Settings, release: Release, in_use: InUse, means: Means
) -> tuple[Tried, tuple[Row, ...]]:
    """What became of it, and the rows that moved, one of each event."""
    until = time.monotonic() + settings.watch.max_hours * _S_PER_HOUR
    means.say(f"Installing {release}.")
    with installed(
        release, in_use, settings, seconds=until - time.monotonic(), should_stop=means.should_stop
    ) as build:
        plan = _plan(settings, [in_use.build, build])
        against = in_use.version_of(release.package)
        means.say(f"Measuring {plural(len(plan.trials), 'trial')}, by turns with {against}.")
        run_ids = _measure(plan, means, until)
        log_builds(database, run_ids, settings, with_messages=False)
        run_ids += _look_again(database, settings, run_ids, means, until)
    comparison = _comparison(database, settings, run_ids)
    if comparison is None:
        raise ReleaseError("nothing of it could be measured; `compilewatch list runs` has the trials.", "")
    text = sentence(release, comparison)
    moved = [rows[0] for rows in events_of_rows(comparison.rows).values() if rows[0].verdict in MOVED]
    moved.sort(key=lambda row: row.verdict is not Verdict.REGRESSED)
    by = {"metric": moved[0].metric.value} if moved else {}
    report_id = means.freeze(upgrade_address(comparison, **by), text)
    return Tried(release, text, report_id), tuple(moved)


def sentence(release: Release, comparison: Comparison) -> str:
    """ "torch 2.16.0rc2 on your 15 models: latency 1 slower, 0 faster, 14 unchanged, 0 undecided; speedup 1
    worse".
    """
    models = len({row.workload for row in comparison.rows})
    tally = comparison.tally
    counted = "; ".join(filter(None, (tallied(tally), besides(tally))))
    return f"{release} on your {plural(models, 'model')}: {counted}"


def _plan(settings: Settings, builds: Sequence[BuildSettings]) -> Plan:
    watch = settings.watch
    device = resolve_device(settings, interpreter_facts(builds))
    return plan_run(settings, suite=watch.suite, trials=watch.trials, device=device, builds=builds)


def _measure(plan: Plan, means: Means, until: float) -> list[str]:
    """The runs, in the order of the builds."""
    outcome = means.measure(plan, max(0.0, until - time.monotonic()))
    if outcome.interrupted:
        raise MeasuringInterruptedError
    return [run.run_id for run in plan.runs]


def _look_again(
    database: Database, settings: Settings, run_ids: Sequence[str], means: Means, until: float
) -> list[str]:
    """The runs that measure afresh what seems slower, while the build is there: what is filed is confirmed
    by that.
    """
    looked: list[str] = []
    for comparison in compare_runs(database, run_ids, settings):
        planned = confirmation_plan(database, comparison, settings.policy, HostStacks.read(settings))
        if planned is not None:
            means.say(f"Measuring {plural(len(planned.spec.cases), 'case')} again that may be slower.")
            again = _measure(plan_request(settings, planned.spec), means, until)
            log_builds(database, again, settings, fresh=True, with_messages=False)
            looked += again
    return looked


def _comparison(database: Database, settings: Settings, run_ids: Sequence[str]) -> Comparison | None:
    """The build in use against the new one, on the runs in which they took turns alone: what else was
    measured of the build in use is not missing in the new one. None without trials of both.
    """
    parts = run_parts(database, run_ids)
    build_of = dict(zip(parts["run_id"].astype(str), parts["build_id"].astype(str), strict=True))
    runs_of: dict[str, list[str]] = {}
    for run_id in run_ids:
        if run_id in build_of:
            runs_of.setdefault(build_of[run_id], []).append(run_id)
    if len(runs_of) != 2:
        return None
    base, head = (
        Selection(name=build, build_ids=(build,), run_ids=tuple(runs)) for build, runs in runs_of.items()
    )
    machine_id = str(parts["machine_id"].iloc[0])
    try:
        return gateway.compare(database, base, head, machine_id=machine_id, policy=settings.policy)
    except VerdictError:
        return None


def _tell(tried: Tried, moved: Sequence[Row], settings: Settings, means: Means) -> None:
    """One message on every channel: what moved is told by it, and by no message of its own."""
    message = Message(
        message_id=identity({"release": str(tried.release), "report": tried.report_id}),
        title=tried.text,
        lines=tuple(map(row_line, moved)),
        link=address(settings.notify.base_url, f"/report/{tried.report_id}") if tried.report_id else None,
        schema=SCHEMA,
    )
    for channel in settings.channel:
        _, problem = send(channel, message, settings.notify, means.pause)
        if problem is not None:
            means.say(f"A message was not sent: {channel.name}: {problem}")
