"""Options every command shares, what they open, and the names that a shell proposes for them.

A shell waits for the answer and shows no error, so a configuration or a database that cannot be read
proposes nothing.
"""

from __future__ import annotations

import getpass
import importlib
import re
import socket
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from compilewatch.db.errors import CompilewatchError, ConfigError, one_line, printable
from compilewatch.runner.config.settings import Settings
from compilewatch.runner.config.sources import load_settings

if TYPE_CHECKING:
    from compilewatch.db.engine.session import Database


Proposals = Callable[[typer.Context, str], list[str]]


def _proposing(*sources: Callable[[Settings], Iterable[str]]) -> Proposals:
    def proposals(context: typer.Context, incomplete: str) -> list[str]:
        names: set[str] = set()
        for source in sources:
            try:
                names.update(source(_settings(context)))
            except CompilewatchError:
                continue
        return sorted(name for name in names if name.startswith(incomplete))

    return proposals


def _settings(context: typer.Context) -> Settings:
    url = context.params.get("db")
    return load_settings(context.params.get("config"), options={} if url is None else {"database_url": url})


def _stored(kind: str) -> Callable[[Settings], Iterable[str]]:
    def names(settings: Settings) -> Iterable[str]:
        from compilewatch.db.engine.session import open_database
        from compilewatch.db.queries.named import stored_names

        with open_database(settings.database_url, read_only=True) as database:
            return stored_names(database, kind)

    return names


def _known(module: str, function: str) -> Callable[[Settings], Iterable[str]]:
    """What a function of the planner knows by name; it is imported when a shell asks."""

    def names(settings: Settings) -> Iterable[str]:
        known: Iterable[str] = getattr(importlib.import_module(module), function)(settings)
        return known

    return names


_installed_builds = _known("compilewatch.runner.plan.builds", "known_builds")
workloads = _proposing(_known("compilewatch.runner.plan.selection", "known_workloads"), _stored("workload"))
strategies = _proposing(_known("compilewatch.runner.plan.selection", "known_strategies"), _stored("strategy"))
suites = _proposing(_known("compilewatch.runner.plan.selection", "known_suites"), _stored("suite"))
machines = _proposing(_stored("machine"))
runs = _proposing(_stored("run"))
stored_workloads = _proposing(_stored("workload"))
builds = _proposing(_stored("build"))
installed_builds = _proposing(_installed_builds)
sides = _proposing(lambda _: ("latest", "previous"), _installed_builds, _stored("build"), _stored("run"))


T = TypeVar("T")

DatabaseOption = Annotated[
    str | None,
    typer.Option(
        "--db",
        metavar="URL",
        help="Database, such as sqlite:///compilewatch.db or postgresql+psycopg://user@host/name. "
        "Also COMPILEWATCH_DATABASE_URL.",
    ),
]
ConfigOption = Annotated[
    Path | None,
    typer.Option(
        "--config", metavar="FILE", help="Configuration. Also COMPILEWATCH_CONFIG; default compilewatch.toml."
    ),
]
DeviceOption = Annotated[str, typer.Option("--device", help="auto, cpu or cuda:0.")]
_FORM = f"{__name__}.form"


def one_form(context: typer.Context, option: typer.CallbackParam, value: T) -> T:
    """Of an option that says in which form a command answers: one answer has one form. Raises ConfigError for
    the second.
    """
    first, this = context.meta.get(_FORM), option.opts[0]
    if value and first not in (None, this):
        raise ConfigError(f"{first} and {this} are two forms of one answer.", "Choose one of them.")
    if value:
        context.meta[_FORM] = this
    return value


JsonOption = Annotated[
    bool, typer.Option("--json", help="Print exactly one JSON document.", callback=one_form)
]
MarkdownOption = Annotated[
    bool, typer.Option("--markdown", help="Print Markdown for a pull request.", callback=one_form)
]
MachineOption = Annotated[
    str | None,
    typer.Option(
        "--machine",
        metavar="NAME",
        help="The machine, by name or id; default: the one with most matched cases.",
        autocompletion=machines,
    ),
]
WorkloadsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--workload",
        "-w",
        metavar="W",
        help="A workload by name, module:function or LIBRARY:MODEL. Repeatable.",
        autocompletion=workloads,
    ),
]
WorkloadArgument = Annotated[
    str,
    typer.Argument(
        metavar="WORKLOAD",
        help="By name, module:function or LIBRARY:MODEL.",
        autocompletion=workloads,
    ),
]
StrategiesOption = Annotated[
    list[str] | None,
    typer.Option(
        "--strategy",
        "-s",
        metavar="S",
        help="A strategy by name. Repeatable.",
        autocompletion=strategies,
    ),
]


def settings_of(config: Path | None, database_url: str | None) -> Settings:
    """The settings in force, with the database named on the command line on top."""
    settings = load_settings(config, options={} if database_url is None else {"database_url": database_url})
    READ_LAST.set(settings)
    return settings


READ_LAST: ContextVar[Settings | None] = ContextVar("READ_LAST", default=None)
"""The settings of the command that is being executed: over a failure its database is looked at."""


@contextmanager
def database_of(
    settings: Settings, *, migrate: bool = True, changes: bool | None = None
) -> Iterator[Database]:
    """The configured database, closed afterwards; with `migrate` made or brought to this program's schema.

    A command that `changes` it, by default one that may make it, names it on standard error at the end.
    """
    # SQLAlchemy takes a while to import, and a command that needs no database does without it.
    from compilewatch.db.engine.session import open_database

    with open_database(settings.database_url, migrate=migrate) as database:
        if migrate:
            from compilewatch.db.store.trial_writer import bring_up

            bring_up(database)
        yield database
        if migrate if changes is None else changes:
            name_database(database)


def name_database(database: Database) -> None:
    """Say on standard error which database was changed."""
    print(f"Database: {printable(database.url)}", file=sys.stderr)


@contextmanager
def database_to_read(settings: Settings) -> Iterator[Database]:
    """The configured database; where there is none yet, an empty one that leaves no file behind."""
    from compilewatch.db.engine.session import open_database, sqlite_file

    path = sqlite_file(settings.database_url)
    if path is None or path.exists() or not path.parent.is_dir():
        with database_of(settings, migrate=False) as database:
            yield database
        return
    with (
        tempfile.TemporaryDirectory(prefix="compilewatch-") as folder,
        open_database(f"sqlite:///{folder}/empty.db", migrate=True) as database,
    ):
        yield database


BuildsOption = Annotated[
    list[str] | None,
    typer.Option("--build", metavar="ID", help="A build's id. Repeatable.", autocompletion=builds),
]


def machine_named(database: Database, name: str | None) -> str | None:
    """The id of the machine that is called so, None where none is named. Raises NotFoundError."""
    from compilewatch.db.queries.named import machines_named

    return machines_named(database, [name])[0] if name is not None else None


def only(name: str | None) -> tuple[str, ...]:
    """The one that is named, as a filter; nothing named leaves it open."""
    return () if name is None else (name,)


def moment_of(option: str, text: str | None) -> datetime | None:
    """The time that `option` names, in UTC unless it says otherwise. Raises ConfigError where it is none."""
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise ConfigError(
            f"{option} {text!r} is not a time.", "Write 2026-11-20 or 2026-11-20T18:00:00Z."
        ) from error
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


# Options of commands that have something measured, now or by a service.

SuiteOption = Annotated[
    str | None,
    typer.Option(
        "--suite",
        help="A suite by name; see `compilewatch list suites`.",
        autocompletion=suites,
    ),
]
TrialsOption = Annotated[
    int | None,
    typer.Option(
        "--trials", min=1, help="Fresh processes per case. A verdict needs 3 a side; 5 % at 2 % noise 10."
    ),
]
PythonsOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--python",
        metavar="PATH",
        help="An interpreter with another torch, for the configured builds. Repeatable.",
    ),
]
StacksOption = Annotated[
    list[str] | None,
    typer.Option(
        "--build",
        metavar="NAME",
        help="One of `compilewatch builds list`. Repeatable; unset: those of the configuration.",
        autocompletion=installed_builds,
    ),
]
LabelOption = Annotated[
    str | None, typer.Option("--label", help="A name for the build, such as '2.13 + driver 580'.")
]
ProfileOption = Annotated[
    bool,
    typer.Option(
        "--profile", help="Profile the first trial of every case with torch.profiler, in its own process."
    ),
]
TraceOption = Annotated[
    bool,
    typer.Option(
        "--trace",
        help="Store the generated code and the compiler's log of every case, with tlparse's report where it "
        "is installed.",
    ),
]


# Who is at this terminal, for what keeps a name.

LONGEST_NAME = 200


def author(by: str | None) -> str:
    """`by`, else the user's name on this machine, in one line. Raises ConfigError where there is neither."""
    if by is not None and not by.strip():
        raise ConfigError("--by is empty.", "Give a name, or leave it out.")
    try:
        return one_line(by or getpass.getuser(), LONGEST_NAME)
    except (OSError, KeyError, ImportError) as error:
        raise ConfigError("This user has no name on this machine.", "Give your name with --by.") from error


def who_asks() -> str:
    """The person at this terminal and its host, for the history of a request: "anna@gpu-box-3"."""
    try:
        user = getpass.getuser()
    except (OSError, KeyError, ImportError):
        user = "somebody"
    return f"{user}@{socket.gethostname()}"


_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600}
_DURATION = re.compile(r"(\d{1,6}(?:\.\d{1,3})?)([smh]?)")


def seconds_of(option: str, text: str) -> float:
    """Seconds of "90", "90s", "10m" or "1.5h". Raises ConfigError for anything else."""
    found = _DURATION.fullmatch(text.strip())
    if found is None:
        raise ConfigError(f"{option} is no duration: {one_line(text)!r}.", f"Give one such as {option} 10m.")
    return float(found[1]) * _SECONDS[found[2]]
