"""`compilewatch builds`: environments with other releases of torch, to measure side by side."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from compilewatch.db.units import MISSING
from compilewatch.runner.cli import options
from compilewatch.runner.cli.options import ConfigOption, JsonOption, settings_of
from compilewatch.runner.config.settings import Settings
from compilewatch.runner.output.documents import print_document
from compilewatch.runner.output.tables import console, plain_table
from compilewatch.runner.plan.builds import create_build, created_builds, remove_build

app = typer.Typer(
    help="Other releases of torch, each in its own environment.", no_args_is_help=True, rich_markup_mode=None
)


@app.command("create")
def create(
    requirements: Annotated[
        list[str],
        typer.Argument(
            metavar="torch==RELEASE [PACKAGE]...",
            help="The torch, then other packages that your workloads import.",
        ),
    ],
    name: Annotated[str | None, typer.Option(help="Default: torch-RELEASE.")] = None,
    python: Annotated[
        Path | None, typer.Option(metavar="PATH", help="The Python for it; default: this one.")
    ] = None,
    index_url: Annotated[
        str | None, typer.Option(help="A package index, such as that of torch's CPU builds; default: pip's.")
    ] = None,
    config: ConfigOption = None,
) -> int:
    """Install a release of torch under the data directory, for `run --build`.

    Example: compilewatch builds create torch==2.12.1
    """
    settings = settings_of(config, None)

    def announce() -> None:
        what = ", ".join(requirements)
        print(f"Installing {what}; a build with CUDA is a download of 3 GB.", file=sys.stderr)

    build = create_build(
        requirements, settings, name=name, base=python, index_url=index_url, before_install=announce
    )
    typer.echo(f"{build.name}: torch {build.facts.torch}, Python {build.facts.python}")
    print(f"Measure it with: compilewatch run --build {build.name}", file=sys.stderr)
    return 0


@app.command("list")
def list_(json_: JsonOption = False, config: ConfigOption = None) -> int:
    """The builds for `run --build`: created ones and those of the configuration.

    Example: compilewatch builds list
    """
    rows = _rows(settings_of(config, None))
    if json_:
        print_document({"schema": "compilewatch.builds/1", "rows": rows})
        return 0
    if not rows:
        typer.echo("No builds yet. Make one with `compilewatch builds create torch==RELEASE`.")
        return 0
    cells = ([str(value or MISSING) for value in row.values()] for row in rows)
    console().print(plain_table(rows[0], cells))
    return 0


@app.command("remove")
def remove(
    name: Annotated[
        str,
        typer.Argument(
            help="A created build; see `compilewatch builds list`.",
            autocompletion=options.installed_builds,
        ),
    ],
    config: ConfigOption = None,
) -> int:
    """Delete a created build; its measured trials stay. Example: compilewatch builds remove torch-2.12.1"""
    remove_build(name, settings_of(config, None))
    typer.echo(f"{name} is removed.")
    return 0


def _rows(settings: Settings) -> list[dict[str, Any]]:
    created = [
        {
            "build": build.name,
            "torch": build.facts.torch,
            "python": build.facts.python,
            "packages": ", ".join(build.facts.requirements[1:]),
            "from": "builds create",
            "interpreter": str(build.python),
        }
        for build in created_builds(settings)
    ]
    unknown = dict.fromkeys(("torch", "python", "packages"))
    return created + [
        {"build": each.name, **unknown, "from": "configuration", "interpreter": str(each.python)}
        for each in settings.builds
    ]
