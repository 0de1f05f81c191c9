"""The commands, by name."""

from __future__ import annotations

from typing import Annotated

import typer

from db import __version__
from runner.cli import (
    break_even,
    browse,
    builds,
    compare,
    config,
    database,
    doctor,
    gate,
    history,
    interchange,
    report,
    reproduce,
    request,
    run,
    schedule,
    serve,
    triage,
)

app = typer.Typer(
    name="compilewatch",
    help="The performance history of torch.compile on your own GPUs.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    add_completion=False,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"compilewatch {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Measure, judge and show what torch.compile does on this machine."""


app.command("run")(run.run)
app.command("dashboard")(serve.dashboard)
app.command("list")(browse.list_)
app.command("show")(browse.show)
app.command("reproduce")(reproduce.reproduce)
app.command("break-even")(break_even.break_even_command)
app.command("compare")(compare.compare)
app.command("gate")(gate.gate)
app.command("history")(history.history)
app.command("triage")(triage.triage)
app.command("import")(interchange.import_)
app.command("export")(interchange.export)
app.command("schema")(interchange.schema)
app.command("doctor")(doctor.doctor)
app.add_typer(report.app, name="report")
app.add_typer(builds.app, name="builds")
app.add_typer(schedule.app, name="schedule")
app.add_typer(request.app, name="request")
app.add_typer(config.app, name="config")
app.add_typer(database.app, name="db")
