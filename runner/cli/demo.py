"""`compilewatch demo`: serve the recorded histories; nothing is measured."""

from __future__ import annotations

import importlib.metadata
from pathlib import Path
from typing import Annotated

import typer

from db.errors import CompilewatchError
from runner.cli.interchange import import_
from runner.cli.options import ConfigOption, settings_of
from runner.cli.serve import dashboard

_CHECKOUT = Path(__file__).parents[2] / "docs" / "measured"


def demo(
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port to listen on.")] = 8501,
    config: ConfigOption = None,
) -> int:
    """Serve recorded histories: six torch releases on a CPU, two on an H100. Example: compilewatch demo

    Nothing is measured. They have a database of their own, demo.db in the data directory.
    """
    settings = settings_of(config, None)
    file = settings.data_dir.absolute() / "demo.db"
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CompilewatchError(
            f"{file.parent} cannot be made: {error.strerror}.", "Type it in a folder you may write to."
        ) from error
    url = f"sqlite:///{file}"
    code = import_(_recorded(), db=url, config=config)
    return code or dashboard(host=host, port=port, db=url, config=config)


def _recorded() -> list[Path]:
    """The histories of a checkout, else those that were installed with the package."""
    found = sorted(_CHECKOUT.rglob("*.jsonl"))
    if not found:
        shipped = importlib.metadata.files("compilewatch") or []
        found = sorted(Path(str(file.locate())).resolve() for file in shipped if file.suffix == ".jsonl")
    if not found:
        raise CompilewatchError(
            "The recorded histories are not installed.", "Install the wheel of a release, or use a checkout."
        )
    return found
