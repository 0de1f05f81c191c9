"""The commands, by name. None is imported before it is called: see `runner.cli.lazy`."""

from __future__ import annotations

from typing import Annotated

import typer

from db import __version__
from runner.cli.lazy import lazy_group

_PLACES = {
    "run": "runner.cli.run:run",
    "dashboard": "runner.cli.serve:dashboard",
    "list": "runner.cli.browse:list_",
    "show": "runner.cli.browse:show",
    "reproduce": "runner.cli.reproduce:reproduce",
    "break-even": "runner.cli.break_even:break_even_command",
    "geomean": "runner.cli.geomean:geomean_command",
    "compare": "runner.cli.compare:compare",
    "gate": "runner.cli.gate:gate",
    "history": "runner.cli.history:history",
    "triage": "runner.cli.triage:triage",
    "import": "runner.cli.interchange:import_",
    "export": "runner.cli.interchange:export",
    "schema": "runner.cli.interchange:schema",
    "doctor": "runner.cli.doctor:doctor",
    "report": "runner.cli.report:app",
    "builds": "runner.cli.builds:app",
    "schedule": "runner.cli.schedule:app",
    "request": "runner.cli.request:app",
    "worker": "runner.cli.worker:worker",
    "config": "runner.cli.config:app",
    "db": "runner.cli.database:app",
    "token": "runner.cli.token:app",
}

app = typer.Typer(
    name="compilewatch",
    cls=lazy_group(_PLACES),
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
