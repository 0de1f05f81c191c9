"""Options of `compilewatch import`: what a file may leave unsaid."""

from __future__ import annotations

from typing import Annotated

import typer

from db.interchange.options import ToldDevice, ToldStrategy
from db.records import Task

_UNSAID = "where the file does not say it."

FormatOption = Annotated[str, typer.Option("--format", help="auto, or the name of a format.")]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Show what would come in; store nothing.")]
TorchOption = Annotated[str | None, typer.Option("--torch", help=f"torch version, {_UNSAID}")]
CudaOption = Annotated[str | None, typer.Option("--cuda", help=f"CUDA version, {_UNSAID}")]
DriverOption = Annotated[str | None, typer.Option("--driver", help=f"Driver version, {_UNSAID}")]
PythonOption = Annotated[str | None, typer.Option("--python", help=f"Python version, {_UNSAID}")]
DeviceOption = Annotated[ToldDevice | None, typer.Option("--device", help=f"Kind of device, {_UNSAID}")]
DeviceNameOption = Annotated[str | None, typer.Option("--device-name", help=f"GPU or CPU model, {_UNSAID}")]
MachineNameOption = Annotated[str | None, typer.Option("--machine", help="A name for the machine.")]
DtypeOption = Annotated[str | None, typer.Option("--dtype", help=f"Data type, {_UNSAID}")]
BatchSizeOption = Annotated[int | None, typer.Option("--batch-size", min=1, help=f"Batch size, {_UNSAID}")]
TaskOption = Annotated[Task | None, typer.Option("--task", help=f"Task, {_UNSAID}")]
ToldStrategyOption = Annotated[
    ToldStrategy | None,
    typer.Option("--strategy", help="csv, timm-csv, dynamo-csv: how it was executed, where nothing says it."),
]
MeasuredAtOption = Annotated[
    str | None, typer.Option("--measured-at", metavar="TIME", help=f"When it was measured, {_UNSAID}")
]
PairKeyOption = Annotated[
    str | None,
    typer.Option("--pair-key", help="pytest-benchmark: the parameter that names the strategy."),
]
ColumnsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--column", metavar="FIELD=COLUMN", help="csv: what a column is, such as latency_ms=time; repeat."
    ),
]
SuiteNameOption = Annotated[str | None, typer.Option("--suite", help="A suite name for what comes in.")]
