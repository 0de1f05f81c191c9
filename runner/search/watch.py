"""`[watch]`: measures each new release beside the build in use, freezes what it shows, and tells it once."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from compilewatch.db.engine.session import Database
from compilewatch.db.errors import CompilewatchError, DatabaseError
from compilewatch.db.judge.compare.recorded_regressions import events_of_rows
from compilewatch.db.judge.compare.sides import Selection, VerdictError
from compilewatch.db.judge.decide import MOVED
from compilewatch.db.judge.results import Comparison, Row
from compilewatch.db.judge.sentences import besides, tallied
from compilewatch.db.queries.run_parts import run_parts
from compilewatch.db.records.ids import identity
from compilewatch.db.records.vocabulary import Verdict
from compilewatch.db.service.reports import reports_frame
from compilewatch.db.units import duration, plural
from compilewatch.db.verdicts import gateway
from compilewatch.runner.config.settings import BuildSettings, Settings
from compilewatch.runner.plan.builds import interpreter_facts
from compilewatch.runner.plan.durations import plan_s
from compilewatch.runner.plan.host_stacks import HostStacks
from compilewatch.runner.plan.plan import Plan, plan_run
from compilewatch.runner.plan.requests import plan_request
from compilewatch.runner.plan.selection import resolve_device
from compilewatch.runner.process.execution import RunOutcome
from compilewatch.runner.regressions.channels import Message
from compilewatch.runner.regressions.confirmation import confirmation_plan
from compilewatch.runner.regressions.log import compare_runs, log_builds
from compilewatch.runner.regressions.notify import address, row_line, send, upgrade_address
from compilewatch.runner.search.environments import MeasuringInterruptedError, disk_words
from compilewatch.runner.search.new_releases import (
    InUse,
    Release,
    ReleaseError,
    installed,
    newest_releases,
    only_here,
)

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
        log_builds(database, run_ids, settings, told=False)
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
            log_builds(database, again, settings, fresh=True, told=False)
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
