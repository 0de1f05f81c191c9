"""`compilewatch schedule`: the service, and the schedules it keeps."""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from datetime import UTC, datetime
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from compilewatch.db.engine.session import Database
from compilewatch.db.errors import one_line
from compilewatch.db.records.hosts import JobState
from compilewatch.db.records.requests import Firing, Schedule, ScheduleWatch
from compilewatch.db.records.trial import Status, Trial
from compilewatch.db.service.schedules import (
    SCHEDULES,
    last_firings,
    pause_schedule,
    resume_schedule,
    save_schedule,
)
from compilewatch.db.units import MISSING, moment, plural, words
from compilewatch.runner.cli.options import (
    ConfigOption,
    DatabaseOption,
    JsonOption,
    database_of,
    database_to_read,
    settings_of,
    who_asks,
)
from compilewatch.runner.config.settings import Settings
from compilewatch.runner.fleet.names import require_fleet
from compilewatch.runner.output.documents import print_document
from compilewatch.runner.output.progress import stop_signal
from compilewatch.runner.output.tables import LONGEST_MESSAGE, console, plain_table
from compilewatch.runner.plan.cancellation import PreparationCancelledError
from compilewatch.runner.plan.plan import Plan
from compilewatch.runner.service.logs import log_to_standard_error

if TYPE_CHECKING:
    from compilewatch.runner.process.execution import RunOutcome
    from compilewatch.runner.service.serving import Measures

app = typer.Typer(no_args_is_help=False, rich_markup_mode=None)

NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="A schedule by name.")]
_SHOWN_FIRINGS = 5
_LOG = logging.getLogger("compilewatch.schedule")


@app.callback(invoke_without_command=True)
def schedule(context: typer.Context, db: DatabaseOption = None, config: ConfigOption = None) -> int:
    """Run the service: it measures by schedule, on request and after upgrades.

    SIGTERM and Ctrl-C end it within 10 s; measured trials are stored. Example: compilewatch schedule
    """
    if context.invoked_subcommand is not None:
        return 0
    settings = settings_of(config, db)
    log_to_standard_error(settings.service.log_format)
    # The scheduler takes a while to import, and the other commands do without it.
    from compilewatch.runner.service.service import Service

    with database_of(settings, changes=False) as database, stop_signal() as stop:
        fleet = bool(settings.fleet.queues)
        measures = _on_workers(database, settings, stop) if fleet else _here(database, settings)
        service = Service(
            settings,
            database,
            measures,
            judge=lambda plan: _judge(plan, database, settings),
            notify_silence=lambda watch, schedule: _notify_silence(watch, schedule, settings),
            notify_compiled=lambda job: _notify_compiled(job, settings),
            try_releases=_Releases(database, settings).try_new,
        )
        _LOG.info("Serving %s with %s.", database.url, plural(len(settings.schedule), "schedule"))
        with _launching(database, settings, stop):
            service.run(stop)
    _LOG.info("Stopped.")
    return 0


@app.command("list")
def list_(
    context: typer.Context, json_: JsonOption = False, db: DatabaseOption = None, config: ConfigOption = None
) -> int:
    """The schedules with their next five firings and the result of the last one.

    Example: compilewatch schedule list
    """
    from compilewatch.runner.service.service import configured_schedules

    settings = _settings(context, db, config)
    with database_to_read(settings) as database:
        last = last_firings(database)
        stored = {each.name: each for each in SCHEDULES.all(database)}
    now = datetime.now(UTC)
    for name, spec in configured_schedules(settings).items():
        new = Schedule(name=name, spec=spec, from_config=True, paused=False, active_since=now)
        stored[name] = stored.get(name, new).model_copy(update={"spec": spec, "from_config": True})
    rows = [_row(stored[name], last.get(name), settings) for name in sorted(stored)]
    if json_:
        print_document({"schema": "compilewatch.schedules/1", "rows": rows})
    elif rows:
        console().print(_table(rows))
    else:
        typer.echo("No schedules yet. Write a [[schedule]] into the configuration.")
    return 0


@app.command("pause")
def pause(
    context: typer.Context, name: NameArgument, db: DatabaseOption = None, config: ConfigOption = None
) -> int:
    """Pause a schedule until it is resumed. Example: compilewatch schedule pause nightly"""
    return _change(_settings(context, db, config), name, paused=True)


@app.command("resume")
def resume(
    context: typer.Context, name: NameArgument, db: DatabaseOption = None, config: ConfigOption = None
) -> int:
    """Resume a paused schedule; missed firings stay missed.

    Example: compilewatch schedule resume nightly
    """
    return _change(_settings(context, db, config), name, paused=False)


class LogProgress:
    """What the service says of a running plan: one line per trial in its log."""

    def trial_started(self, number: int, workload: str, strategy: str, build: str | None) -> None:
        on = "" if build is None else f" on {build}"
        _LOG.debug("Trial %d: %s / %s%s.", number, workload, strategy, on)

    def phase(self, name: str) -> None:
        _LOG.debug("Phase %s.", name)

    def trial_finished(self, trial: Trial) -> None:
        case = f"{trial.workload.name} / {trial.strategy.name}"
        if trial.status is Status.FAILED and trial.failure is not None:
            reason = one_line(trial.failure.message.partition("\n")[0], LONGEST_MESSAGE)
            _LOG.warning("%s failed (%s): %s", case, words(trial.failure.kind.value), reason)
        else:
            _LOG.info("%s measured, trial %s.", case, trial.trial_id)


def _judge(plan: Plan, database: Database, settings: Settings) -> None:
    """Builds that took turns against each other, a single run against the one before: remembered and told.

    What looks like a regression is queued to be confirmed.
    """
    # The judge's arithmetic takes a second to import, and the other commands here do without it.
    from compilewatch.runner.cli.judge.judging import judge_and_log

    run_ids = [run.run_id for run in plan.runs]
    workloads = tuple({trial.workload.name for trial in plan.trials})
    _, logged = judge_and_log(database, run_ids, workloads, settings, request_confirmations=True)
    for regression in logged.recorded.new:
        row = regression.row
        _LOG.warning("%s / %s: %s %s.", row.workload, row.strategy, row.metric.value, row.verdict.value)
    for problem in logged.messages.problems:
        _LOG.warning("A message was not sent: %s", problem)


def _notify_silence(watch: ScheduleWatch, schedule: Schedule, settings: Settings) -> None:
    """In a thread of its own: channels that do not answer must not keep the service from its work."""
    from compilewatch.runner.regressions.notify import notify_silence

    arguments = (watch, schedule, settings.channel, settings.notify)
    Thread(target=notify_silence, args=arguments, name="telling", daemon=True).start()


def _notify_compiled(job: list[JobState], settings: Settings) -> None:
    """As of silence: in a thread of its own."""
    from compilewatch.runner.regressions.notify import notify_compiled

    arguments = (job, settings.channel, settings.notify)
    Thread(target=notify_compiled, args=arguments, name="telling", daemon=True).start()


class _Releases:
    """Tries what is new of `[watch]`; what could not be tried waits for the next start of the service."""

    def __init__(self, database: Database, settings: Settings) -> None:
        self._database = database
        self._settings = settings
        self._tried: set[tuple[str, str]] = set()
        self._said: set[str] = set()

    def try_new(self, should_stop: Callable[[], bool]) -> None:
        """Measures each at once. Raises CompilewatchError where pip cannot say what there is."""
        # Searching brings pandas and the judge, and most services watch nothing.
        from compilewatch.runner.cli.measure.watch import freeze, signer
        from compilewatch.runner.search.environments import MeasuringInterruptedError
        from compilewatch.runner.search.watch import (
            Means,
            build_in_use,
            new_releases,
            not_installed,
            try_releases,
        )

        database, settings = self._database, self._settings
        in_use = build_in_use(settings)
        for line in {*not_installed(settings, in_use)} - self._said:
            self._said.add(line)
            _LOG.warning("%s", line)
        offered = new_releases(database, settings, in_use, by=signer())
        releases = [each for each in offered if each not in self._tried]
        means = Means(
            lambda plan, seconds: self._measured(plan, seconds, should_stop),
            lambda *page: freeze(settings, *page),
            _LOG.info,
            should_stop,
        )
        with suppress(MeasuringInterruptedError, PreparationCancelledError):
            for tried in try_releases(database, settings, releases, in_use, means):
                self._tried.add(tried.release)
                _LOG.info("%s", tried.text)

    def _measured(self, plan: Plan, seconds: float, should_stop: Callable[[], bool]) -> RunOutcome:
        from compilewatch.runner.plan.durations import Durations, TimeBudget, stored_durations_s

        durations = Durations(stored_durations_s(self._database, plan))
        budget = TimeBudget(seconds, durations, canaries=plan.canaries)
        return _execute(plan, self._database, self._settings, should_stop, admits=budget.admits)


def _execute(
    plan: Plan,
    database: Database,
    settings: Settings,
    is_cancelled: Callable[[], bool],
    **options: Any,
) -> RunOutcome:
    from compilewatch.runner.process.execution import execute
    from compilewatch.runner.process.spool import Spool

    spool = Spool(settings.data_dir / "spool")
    return execute(plan, database, spool, progress=LogProgress(), is_cancelled=is_cancelled, **options)


def _here(database: Database, settings: Settings) -> Measures:
    from compilewatch.runner.service.serving import Here

    return Here(lambda plan, is_cancelled: _execute(plan, database, settings, is_cancelled))


def _on_workers(database: Database, settings: Settings, stop: Event) -> Measures:
    """Raises ConfigError where the database is not PostgreSQL or the extra is missing."""
    require_fleet(settings.database_url)
    from compilewatch.runner.fleet.dispatch import Fleet, ProcrastinateExecutor

    def executor(queue: str, priority: int) -> ProcrastinateExecutor:
        return ProcrastinateExecutor(
            database,
            settings.database_url,
            queue=queue,
            priority=priority,
            stalled_s=settings.fleet.stalled_s,
        )

    return Fleet(
        settings, database, executor, progress=LogProgress(), stop=stop, clock=lambda: datetime.now(UTC)
    )


def _launching(database: Database, settings: Settings, stop: Event) -> AbstractContextManager[None]:
    if not settings.fleet.queues:
        return nullcontext()
    from compilewatch.runner.fleet.launch import launching

    return launching(settings, database, socket.gethostname(), stop)


def _settings(context: typer.Context, db: str | None, config: Path | None) -> Settings:
    """Options count wherever they stand: before the subcommand or after it."""
    outer_options = context.parent.params if context.parent else {}
    return settings_of(config or outer_options.get("config"), db or outer_options.get("db"))


def _store_configured(database: Database, settings: Settings) -> None:
    from compilewatch.runner.service.service import configured_schedules

    for name, spec in configured_schedules(settings).items():
        save_schedule(database, name, spec, at=datetime.now(UTC), from_config=True)


def _change(settings: Settings, name: str, *, paused: bool) -> int:
    change, state = (pause_schedule, "paused") if paused else (resume_schedule, "active")
    with database_of(settings) as database:
        _store_configured(database, settings)
        changed = change(database, name, by=who_asks(), at=datetime.now(UTC))
    typer.echo(f"Schedule {name} is {state}." if changed else f"Schedule {name} was {state} already.")
    return 0


def _row(schedule: Schedule, last: Firing | None, settings: Settings) -> dict[str, Any]:
    in_config = any(entry.name == schedule.name for entry in settings.schedule)
    fires = not schedule.paused and (in_config or not schedule.from_config)
    return {
        "name": schedule.name,
        **schedule.spec.model_dump(),
        "suite": schedule.spec.suite or settings.run.suite,
        "state": "paused" if schedule.paused else "active" if fires else "not in this configuration",
        "next_firings_at": _next(schedule) if fires else [],
        "last_fire_at": last.fire_at.isoformat() if last else None,
        "last_outcome": last.outcome.value if last else None,
        "last_firings": last.firings if last else None,
        "last_request_id": last.request_id if last else None,
    }


def _next(schedule: Schedule) -> list[str]:
    from compilewatch.runner.config.cron import next_firings, parse_cron

    trigger = parse_cron(schedule.spec.cron, schedule.spec.timezone)
    return [at.isoformat() for at in next_firings(trigger, datetime.now(UTC), _SHOWN_FIRINGS)]


def _table(rows: list[dict[str, Any]]) -> Table:
    cells = []
    for row in rows:
        following = "\n".join(moment(datetime.fromisoformat(at)) for at in row["next_firings_at"])
        at = row["last_fire_at"]
        last = f"{moment(datetime.fromisoformat(at))} {row['last_outcome']}" if at else MISSING
        cron = f"{row['cron']} {row['timezone']}"
        cells.append((row["name"], cron, row["suite"], row["state"], following, last))
    return plain_table(("name", "cron", "suite", "state", "next firings", "last firing"), cells)
