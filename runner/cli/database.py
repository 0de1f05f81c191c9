"""`compilewatch db`: look after the database."""

from __future__ import annotations

import typer

from runner.cli.options import ConfigOption, DatabaseOption, database_of, settings_of

app = typer.Typer(help="Look after the database.", no_args_is_help=True, rich_markup_mode=None)


@app.command("upgrade")
def upgrade(db: DatabaseOption = None, config: ConfigOption = None) -> int:
    """Create the database or bring it to this release's schema. Example: compilewatch db upgrade"""
    with database_of(settings_of(config, db)) as database:
        typer.echo(f"{database.url} has the schema of this release.")
    return 0
