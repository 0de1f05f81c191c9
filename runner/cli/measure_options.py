"""Options of commands that have something measured, now or by a service."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

SuiteOption = Annotated[
    str | None,
    typer.Option("--suite", help="A suite by name; see `compilewatch list suites`."),
]
TrialsOption = Annotated[
    int | None,
    typer.Option(
        "--trials", min=1, help="Fresh processes per case. A verdict needs 3 a side; 5 % at 2 % noise 10."
    ),
]
PythonsOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--python",
        metavar="PATH",
        help="An interpreter with another torch, for the configured builds. Repeatable.",
    ),
]
StacksOption = Annotated[
    list[str] | None,
    typer.Option(
        "--build",
        metavar="NAME",
        help="One of `compilewatch builds list`. Repeatable; unset: those of the configuration.",
    ),
]
LabelOption = Annotated[
    str | None, typer.Option("--label", help="A name for the build, such as '2.13 + driver 580'.")
]
ProfileOption = Annotated[
    bool,
    typer.Option(
        "--profile",
        help="Look into the first trial of every case with torch.profiler, in a process apart.",
    ),
]
TraceOption = Annotated[
    bool,
    typer.Option(
        "--trace",
        help="Keep the compiler's own log of every case, and tlparse's report where it is there.",
    ),
]
