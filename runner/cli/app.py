"""The commands, by name. None is imported before it is called."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from functools import cache
from types import SimpleNamespace
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from compilewatch import __version__

# Commands that are imported when they are called: most need neither pandas nor a second to start.


def lazy_group(places: Mapping[str, str]) -> type[TyperGroup]:
    """A group of the commands at `places`, in that order: by name "module:function" or "module:app"."""

    class LazyGroup(TyperGroup):
        def __init__(self, **attributes: Any) -> None:
            super().__init__(**attributes | {"commands": dict.fromkeys(places)})

        def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002
            return _load(cmd_name, places[cmd_name]) if cmd_name in places else None

        def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
            """Names alone: the help of each would import all of them, for seconds at every keystroke."""
            if incomplete and not incomplete[0].isalnum():
                return super().shell_complete(ctx, incomplete)
            names = [name for name in places if name.startswith(incomplete)]
            return [SimpleNamespace(type="plain", value=name, help=None) for name in names]

    return LazyGroup


@cache
def _load(name: str, place: str) -> Any:
    module, _, attribute = place.partition(":")
    command = getattr(importlib.import_module(module), attribute)
    # Built by Typer inside a group of one, so that a command is what it would be in an eager group.
    group = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
    group.callback()(_nothing)
    if isinstance(command, typer.Typer):
        group.add_typer(command, name=name)
    else:
        group.command(name)(command)
    whole: Any = typer.main.get_command(group)
    return whole.commands[name]


def _nothing() -> None:
    """The group that is only there to build its command."""


_PLACES = {
    "advise": "compilewatch.runner.cli.measure.advise:advise",
    "run": "compilewatch.runner.cli.measure.run:run",
    "explain": "compilewatch.runner.cli.measure.explain:explain",
    "largest-batch": "compilewatch.runner.cli.measure.largest_batch:largest_batch",
    "dashboard": "compilewatch.runner.cli.stored.serve:dashboard",
    "demo": "compilewatch.runner.cli.stored.demo:demo",
    "list": "compilewatch.runner.cli.stored.listing:list_",
    "show": "compilewatch.runner.cli.stored.show:show",
    "warm-up": "compilewatch.runner.cli.stored.recorded_job:warm_up",
    "caches": "compilewatch.runner.cli.stored.recorded_job:caches",
    "reproduce": "compilewatch.runner.cli.measure.reproduce:reproduce",
    "precompile": "compilewatch.runner.cli.measure.precompile:precompile",
    "break-even": "compilewatch.runner.cli.stored.break_even:break_even_command",
    "geomean": "compilewatch.runner.cli.judge.geomean:geomean",
    "compare": "compilewatch.runner.cli.judge.compare:compare",
    "gate": "compilewatch.runner.cli.judge.gate:gate",
    "history": "compilewatch.runner.cli.judge.history:history",
    "bisect": "compilewatch.runner.cli.measure.bisect:bisect",
    "attribute": "compilewatch.runner.cli.measure.attribute:attribute_command",
    "triage": "compilewatch.runner.cli.judge.triage:triage",
    "annotate": "compilewatch.runner.cli.judge.annotate:annotate",
    "import": "compilewatch.runner.cli.stored.interchange:import_",
    "export": "compilewatch.runner.cli.stored.interchange:export",
    "schema": "compilewatch.runner.cli.stored.interchange:schema",
    "doctor": "compilewatch.runner.cli.measure.doctor:doctor",
    "report": "compilewatch.runner.cli.stored.report:app",
    "builds": "compilewatch.runner.cli.measure.builds:app",
    "watch": "compilewatch.runner.cli.measure.watch:watch",
    "schedule": "compilewatch.runner.cli.measure.schedule:app",
    "request": "compilewatch.runner.cli.measure.request:app",
    "worker": "compilewatch.runner.cli.measure.worker:worker",
    "config": "compilewatch.runner.cli.config:app",
    "db": "compilewatch.runner.cli.stored.database:app",
    "token": "compilewatch.runner.cli.stored.serve:app",
}

MEASURING = frozenset(
    {
        *("advise", "run", "explain", "largest-batch", "reproduce", "precompile", "gate", "bisect"),
        *("attribute", "doctor", "builds", "watch"),
    }
)
"""Those that somebody waits for while processes run: none is silent for long."""

app = typer.Typer(
    name="compilewatch",
    cls=lazy_group(_PLACES),
    help="The performance history of torch.compile on your own GPUs.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
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
