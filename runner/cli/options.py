"""Options every command shares, and what they open."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from runner.config import Settings
from runner.config_sources import load_settings

if TYPE_CHECKING:
    from db.session import Database

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
JsonOption = Annotated[bool, typer.Option("--json", help="Print exactly one JSON document.")]
MarkdownOption = Annotated[bool, typer.Option("--markdown", help="Print Markdown for a pull request.")]
MachineOption = Annotated[
    str | None,
    typer.Option("--machine", metavar="ID", help="The machine; default: the one with most matched cases."),
]
WorkloadsOption = Annotated[
    list[str] | None,
    typer.Option("--workload", "-w", metavar="W", help="A workload by name, or module:function. Repeatable."),
]
StrategiesOption = Annotated[
    list[str] | None, typer.Option("--strategy", "-s", metavar="S", help="A strategy by name. Repeatable.")
]


def settings_of(config: Path | None, database_url: str | None) -> Settings:
    """The settings in force, with the database named on the command line on top."""
    return load_settings(config, options={} if database_url is None else {"database_url": database_url})


@contextmanager
def database_of(settings: Settings, *, migrate: bool = True) -> Iterator[Database]:
    """The configured database, brought to this program's schema, closed afterwards."""
    # SQLAlchemy takes a while to import, and a command that needs no database does without it.
    from db.session import open_database

    database = open_database(settings.database_url, migrate=migrate)
    try:
        yield database
    finally:
        database.close()
