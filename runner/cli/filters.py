"""Filter options of commands that read: the same names as the keys of the dashboard's links."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated

import typer

from db.errors import ConfigError
from db.queries.filters import Filters
from db.records import SourceKind, Status, Task

MachinesOption = Annotated[
    list[str] | None, typer.Option("--machine", metavar="ID", help="A machine's id. Repeatable.")
]
BuildsOption = Annotated[
    list[str] | None, typer.Option("--build", metavar="ID", help="A build's id. Repeatable.")
]
SuitesOption = Annotated[
    list[str] | None, typer.Option("--suite", metavar="S", help="A suite by name. Repeatable.")
]
RunsOption = Annotated[list[str] | None, typer.Option("--run", metavar="ID", help="A run's id. Repeatable.")]
TasksOption = Annotated[list[Task] | None, typer.Option("--task", help="What is measured. Repeatable.")]
SourcesOption = Annotated[
    list[SourceKind] | None, typer.Option("--source", help="Measured here, or imported. Repeatable.")
]
StatusesOption = Annotated[list[Status] | None, typer.Option("--status", help="ok or failed.")]
SinceOption = Annotated[
    str | None, typer.Option("--since", metavar="TIME", help="From this time (RFC 3339, UTC) on.")
]
UntilOption = Annotated[
    str | None, typer.Option("--until", metavar="TIME", help="Up to this time (RFC 3339, UTC).")
]


def filters_of(
    *,
    workload: Sequence[str] | None = None,
    strategy: Sequence[str] | None = None,
    machine: Sequence[str] | None = None,
    build: Sequence[str] | None = None,
    suite: Sequence[str] | None = None,
    run: Sequence[str] | None = None,
    task: Sequence[Task] | None = None,
    status: Sequence[Status] | None = None,
    source: Sequence[SourceKind] | None = None,
    since: str | None = None,
    until: str | None = None,
) -> Filters:
    """The options as one selection. Raises ConfigError for a time that is none."""
    return Filters(
        workloads=tuple(workload or ()),
        strategies=tuple(strategy or ()),
        machines=tuple(machine or ()),
        builds=tuple(build or ()),
        suites=tuple(suite or ()),
        runs=tuple(run or ()),
        tasks=tuple(task or ()),
        statuses=tuple(status or ()),
        sources=tuple(source or ()),
        since=moment_of("--since", since),
        until=moment_of("--until", until),
    )


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
