"""`compilewatch annotate`: a note at a day or at a build, on every axis of time."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

import typer
from pydantic import ValidationError
from ulid import ULID

from compilewatch.db.engine.session import Database
from compilewatch.db.errors import ConfigError, printable
from compilewatch.db.queries.named import require_stored
from compilewatch.db.queries.selection import Filters
from compilewatch.db.records.people import LONGEST_TEXT
from compilewatch.db.records.people import Annotation as Note
from compilewatch.db.service.annotations import ANNOTATIONS, annotation_like
from compilewatch.db.verdicts.sides import builds_named
from compilewatch.runner.cli import options
from compilewatch.runner.cli.options import (
    ConfigOption,
    DatabaseOption,
    JsonOption,
    author,
    database_of,
    machine_named,
    moment_of,
    only,
    settings_of,
)
from compilewatch.runner.output.documents import print_document


def annotate(
    text: Annotated[
        str | None,
        typer.Argument(metavar="TEXT", help=f"What happened, in at most {LONGEST_TEXT} characters."),
    ] = None,
    on: Annotated[
        str | None, typer.Option(metavar="DAY", help="When, as 2026-11-20 or with a time; default: now.")
    ] = None,
    build: Annotated[
        str | None, typer.Option(metavar="BUILD", help="In place of a day: torch=2.13.0, a label, an id.")
    ] = None,
    machine: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="The machine it is about; default: all.", autocompletion=options.machines
        ),
    ] = None,
    workload: Annotated[
        str | None,
        typer.Option(
            "--workload",
            "-w",
            metavar="W",
            help="The workload it is about; default: all.",
            autocompletion=options.stored_workloads,
        ),
    ] = None,
    url: Annotated[str | None, typer.Option(help="Link to the discussion or the change.")] = None,
    by: Annotated[
        str | None, typer.Option(metavar="NAME", help="Your name; default: the user logged in.")
    ] = None,
    remove: Annotated[
        str | None, typer.Option(metavar="ID", help="Take one of `compilewatch list annotations` away.")
    ] = None,
    json_: JsonOption = False,
    db: DatabaseOption = None,
    config: ConfigOption = None,
) -> int:
    """Write a note at a day or at a build, which histories show beside the figures.

    Example: compilewatch annotate "Driver 580 installed" --on 2026-11-20
    """
    if (text is None) == (remove is None):
        raise ConfigError(
            "There is nothing to write.", 'Type a text, as in annotate "Driver 580", or --remove ID.'
        )
    with database_of(settings_of(config, db), migrate=False, changes=True) as database:
        if remove is not None:
            note = annotation_like(database, remove)
            ANNOTATIONS.remove(database, note.annotation_id)
            typer.echo(printable(f"Removed: {note.text}"))
            return 0
        note = _note(database, str(text), on, build, machine, workload, url, author(by))
        ANNOTATIONS.add(database, note)
    if json_:
        print_document({"schema": "compilewatch.annotation/1", **note.model_dump(mode="json")})
        return 0
    typer.echo(printable(f"Annotated {note.annotation_id}: {note.text}"))
    return 0


def _note(
    database: Database,
    text: str,
    on: str | None,
    build: str | None,
    machine: str | None,
    workload: str | None,
    url: str | None,
    by: str,
) -> Note:
    if on is not None and build is not None:
        raise ConfigError("--on and --build name two places.", "Give one of them.")
    at = moment_of("--on", on) if on is not None else None
    build_id = builds_named([build], database)[0] if build is not None else None
    require_stored(database, Filters(workloads=only(workload)))
    try:
        return Note(
            annotation_id=str(ULID()),
            text=" ".join(text.split()),
            url=url,
            author=by,
            written_at=datetime.now(UTC),
            happened_at=at or (None if build_id else datetime.now(UTC)),
            build_id=build_id,
            machine_id=machine_named(database, machine),
            workload=workload,
        )
    except ValidationError as error:
        wanted = {
            "text": f"The text must have 1 to {LONGEST_TEXT} characters",
            "url": "--url must start with http:// or https:// and hold no blanks",
        }
        name = str(error.errors()[0]["loc"][0])
        raise ConfigError(f"{wanted.get(name, 'This cannot be stored')}.", "Nothing was changed.") from error
