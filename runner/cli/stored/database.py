"""`compilewatch db`: look after the database."""

from __future__ import annotations

import contextlib
import signal
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from compilewatch.db.engine.session import open_database, shown_address
from compilewatch.db.errors import CompilewatchError
from compilewatch.db.queries.named import require_stored as require_named
from compilewatch.db.queries.selection import Filters
from compilewatch.db.queries.trials import trial_ids
from compilewatch.db.service.integrity import (
    MADE_ANEW,
    find_damage,
    trials_of_impossible_moments,
    trials_of_impossible_samples,
)
from compilewatch.db.store.removal import remove_trials, require_stored
from compilewatch.db.store.trial_writer import rebuild
from compilewatch.db.units import plural
from compilewatch.db.units import size as bytes_text
from compilewatch.runner.cli import options
from compilewatch.runner.cli.options import (
    ConfigOption,
    DatabaseOption,
    JsonOption,
    database_of,
    only,
    settings_of,
)
from compilewatch.runner.output.documents import print_document

app = typer.Typer(
    help="Check, back up, upgrade and clean the database.", no_args_is_help=True, rich_markup_mode=None
)

_File = Annotated[Path, typer.Argument(metavar="FILE", help="The backup, a SQLite file.")]


@app.command("upgrade")
def upgrade(db: DatabaseOption = None, config: ConfigOption = None) -> int:
    """Create the database or bring it to this release's schema. Example: compilewatch db upgrade"""
    with database_of(settings_of(config, db), changes=False) as database:
        typer.echo(f"{database.url} has the schema of this release.")
    return 0


@app.command("backup")
def backup(file: _File, db: DatabaseOption = None, config: ConfigOption = None) -> int:
    """Write everything into a new file while others write. Example: compilewatch db backup monday.db"""
    from compilewatch.db.store.backup import back_up

    with _nothing_left_by_sigterm():
        size = back_up(settings_of(config, db).database_url, file)
    typer.echo(f"{file} holds everything ({bytes_text(size)}).")
    return 0


@app.command("restore")
def restore(
    file: _File,
    yes: Annotated[bool, typer.Option("--yes", help="Without confirmation.")] = False,
    db: DatabaseOption = None,
    config: ConfigOption = None,
) -> int:
    """Restore a backup into a new or empty database, after confirmation.

    Example: compilewatch db restore monday.db --db sqlite:///restored.db --yes
    """
    from compilewatch.db.store.backup import restore as restore_backup

    url = settings_of(config, db).database_url
    if file.is_file() and not yes:
        _require_yes(f"Restore {file} into {shown_address(url)}?")
    with _nothing_left_by_sigterm():
        trials = restore_backup(file, url)
    typer.echo(
        f"{plural(trials, 'trial')} of {file} and all that belongs to them are in {shown_address(url)}."
    )
    return 0


@contextlib.contextmanager
def _nothing_left_by_sigterm() -> Iterator[None]:
    """SIGTERM ends the block as an exception does, so that half a file is removed."""
    former = signal.signal(signal.SIGTERM, lambda number, _frame: sys.exit(128 + number))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, former)


@app.command("check")
def check(db: DatabaseOption = None, config: ConfigOption = None, as_json: JsonOption = False) -> int:
    """Check for damage; exits 1 with the next step if there is any. Wrong sums of runs are made anew.

    Example: compilewatch db check
    """
    url = settings_of(config, db).database_url
    with open_database(url, read_only=True) as database:
        damage = find_damage(database)
        shown = database.url
    if any(one.next_step == MADE_ANEW for one in damage):
        with open_database(url) as database:
            rebuild(database)
    if as_json:
        print_document({"database": shown, "sound": not damage, "damage": [asdict(one) for one in damage]})
    else:
        lines = [f"{one.what}\n  {one.next_step}" for one in damage]
        typer.echo("\n".join(lines) or f"{shown} is sound.")
    return 1 if damage else 0


@app.command("remove-trials")
def remove(
    trial: Annotated[list[str] | None, typer.Argument(metavar="TRIAL...", help="Ids of trials.")] = None,
    impossible_moments: Annotated[
        bool,
        typer.Option("--impossible-moments", help="All trials that `db check` lists with such a moment."),
    ] = False,
    impossible_samples: Annotated[
        bool, typer.Option("--impossible-samples", help="All trials that `db check` lists with such samples.")
    ] = False,
    run: Annotated[
        str | None,
        typer.Option("--run", metavar="ID", help="All trials of a run.", autocompletion=options.runs),
    ] = None,
    workload: Annotated[
        str | None,
        typer.Option(
            "--workload",
            "-w",
            metavar="W",
            help="All trials of a workload, of every run and machine.",
            autocompletion=options.stored_workloads,
        ),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Without confirmation.")] = False,
    db: DatabaseOption = None,
    config: ConfigOption = None,
) -> int:
    """Delete trials, after confirmation; `compilewatch list trials` has their ids.

    Example: compilewatch db remove-trials --run 01KA8Z7Q3V5T2M9N4R6S8W0XYZ
    """
    ways = (trial, impossible_moments, impossible_samples, run is not None, workload is not None)
    if sum(map(bool, ways)) != 1:
        raise typer.BadParameter(
            "Name trials, or one of --run, --workload, --impossible-moments and --impossible-samples."
        )
    with open_database(settings_of(config, db).database_url) as database:
        if run is not None or workload is not None:
            named = Filters(runs=only(run), workloads=only(workload))
            require_named(database, named)
            wanted = trial_ids(database, named)
        elif impossible_moments:
            wanted = trials_of_impossible_moments(database)
        else:
            wanted = trials_of_impossible_samples(database) if impossible_samples else list(trial or ())
        if not wanted:
            typer.echo("Nothing to remove.")
            return 0
        require_stored(database, wanted)
        trials = plural(len(wanted), "trial")
        if not yes:
            _require_yes(f"Take {trials} out of {database.url} for ever?")
        remove_trials(database, wanted)
        typer.echo(f"{trials} taken out of {database.url}.")
    return 0


@app.command("vacuum")
def vacuum(db: DatabaseOption = None, config: ConfigOption = None) -> int:
    """Return the space of deleted rows. Example: compilewatch db vacuum"""
    with open_database(settings_of(config, db).database_url) as database:
        before = database.size_bytes()
        database.vacuum()
        after = database.size_bytes()
        typer.echo(f"{database.url}: {bytes_text(before)} before, {bytes_text(after)} now.")
    return 0


@app.command("copy")
def copy(
    source: Annotated[str, typer.Argument(metavar="SOURCE", help="The database to read, as for --db.")],
    target: Annotated[str, typer.Argument(metavar="TARGET", help="A new or empty database.")],
) -> int:
    """Copy every row between SQLite and PostgreSQL; the source does not change.

    Example: compilewatch db copy sqlite:///compilewatch.db postgresql://compilewatch@db.example/compilewatch
    """
    from compilewatch.db.store.backup import copy_database

    copied = copy_database(source, target)
    typer.echo(f"{copied.target} holds all {plural(copied.rows['trial'], 'trial')} and what belongs to them.")
    return 0


def _require_yes(question: str) -> None:
    """Ask it. Raises CompilewatchError for any other answer, and where nobody can answer."""
    try:
        typer.confirm(question, abort=True, err=True)
    except typer.Abort as no:
        raise CompilewatchError(
            "Nothing was changed.", "Answer y, or give --yes where nobody can answer."
        ) from no
