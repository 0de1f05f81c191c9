"""`compilewatch config`: is the configuration right, and where does each value come from?"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import typer
from pydantic_core import to_jsonable_python

from compilewatch.db.engine.session import shown_address
from compilewatch.db.errors import DatabaseError
from compilewatch.db.units import plural
from compilewatch.runner.catalog.builtin import WORKLOADS
from compilewatch.runner.cli.options import ConfigOption, DatabaseOption, JsonOption, settings_of
from compilewatch.runner.config.sources import DEFAULT_FILE, Origin, check_variables, origins
from compilewatch.runner.output.documents import print_document
from compilewatch.runner.output.tables import console, plain_table
from compilewatch.runner.plan.selection import in_table, known_suites, known_workloads, lookup, select

CONFIG_SCHEMA = "compilewatch.config/1"

app = typer.Typer(
    help="Check the configuration, and show where each value comes from.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@app.command("check")
def check(config: ConfigOption = None) -> int:
    """Check the file, the variables and every name in them; exits 2 with the first problem.

    Example: compilewatch config check
    """
    settings = settings_of(config, None)
    check_variables(os.environ)
    for suite in settings.suite:
        select(settings, suite=suite.name)
    own = [name for name in known_workloads(settings) if name not in WORKLOADS]
    select(settings, workloads=own)
    known = known_suites(settings)
    for schedule in settings.schedule:
        if schedule.suite is not None:
            with in_table("schedule", schedule.name):
                lookup("suite", schedule.suite, known)
    for build in settings.builds:
        if not build.python.is_file():
            print(f"Note: [[build]] {build.name} names {build.python}, not on this host.", file=sys.stderr)
    if settings.auth is not None and settings.auth.lacks_secret:
        print(
            "Note: [auth] has no client_secret here; `compilewatch dashboard` needs "
            "COMPILEWATCH_AUTH__CLIENT_SECRET.",
            file=sys.stderr,
        )
    names = ("workload", "suite", "strategy", "build", "schedule", "target", "channel")
    counted = [plural(len(entries), name) for name in names if (entries := getattr(settings, name))]
    file = "The default configuration" if settings.config_file is None else settings.config_file.name
    typer.echo(f"{file} is valid: {', '.join(counted) or 'no tables of its own'}.")
    return 0


@app.command("show")
def show(json_: JsonOption = False, config: ConfigOption = None, db: DatabaseOption = None) -> int:
    """Every value in force and where it comes from: the default, the file, a variable or an option.

    Passwords and tokens are left out. Example: compilewatch config show
    """
    settings = settings_of(config, db)
    values = origins(settings, options={} if db is None else {"database_url": db})
    rows = [_row(origin) for origin in values]
    file = None if settings.config_file is None else str(settings.config_file)
    if json_:
        print_document({"schema": CONFIG_SCHEMA, "file": file, "rows": rows})
        return 0
    print(f"Configuration: {file or f'no {DEFAULT_FILE} here; defaults'}", file=sys.stderr)
    cells = ((row["key"], _written(row["value"]), row["from"]) for row in rows)
    console().print(plain_table(("key", "value", "from"), cells))
    return 0


def _row(origin: Origin) -> dict[str, Any]:
    value = to_jsonable_python(origin.value)  # of a secret asterisks
    if origin.key == "database_url":
        try:
            value = shown_address(value)
        except DatabaseError:
            value = "not an address"
    return {"key": origin.key, "value": value, "from": origin.source}


def _written(value: Any) -> str:
    if value is None:
        return "unset"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
