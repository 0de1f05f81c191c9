"""`compilewatch worker`: measures on one GPU of this host what services queue."""

from __future__ import annotations

import os
import socket
from typing import Annotated

import typer

from compilewatch.db.errors import ConfigError
from compilewatch.runner.cli.options import ConfigOption, DatabaseOption, settings_of
from compilewatch.runner.device.host import owner_of
from compilewatch.runner.device.state import DeviceFacts, device_facts
from compilewatch.runner.fleet.names import queue_of_device, require_fleet
from compilewatch.runner.service.logs import log_to_standard_error


def worker(
    gpu: Annotated[
        str | None,
        typer.Option(
            metavar="GPU", help="UUID or number as nvidia-smi -L shows them, or cpu; unset: the first."
        ),
    ] = None,
    queue: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The machine type to measure for; unset: the GPU's name."),
    ] = None,
    exit_when_idle: Annotated[
        float | None,
        typer.Option(metavar="SECONDS", min=1, help="End once nothing was to be measured for so long."),
    ] = None,
    max_trials: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="End after N trials; the canaries of a run count as one."),
    ] = None,
    db: DatabaseOption = None,
    config: ConfigOption = None,
) -> int:
    """Measure queued trials on one GPU, one at a time, until SIGTERM or Ctrl-C.

    Needs PostgreSQL and compilewatch[fleet]. On a stop the running trial goes back to the queue.
    Example: compilewatch worker --gpu 0
    """
    settings = settings_of(config, db)
    if settings.fleet.spool_dir is not None:
        raise ConfigError(
            "A worker takes its trials from a database, and [fleet] spool_dir says that none is here.",
            "Measure with `compilewatch run`, and import the directory where the database is.",
        )
    require_fleet(settings.database_url)
    facts = _choose(gpu)
    log_to_standard_error(settings.service.log_format)
    from compilewatch.runner.fleet.host_watch import WorkerPlace
    from compilewatch.runner.fleet.listener import serve

    host = socket.gethostname()
    place = WorkerPlace(
        host=host,
        owner=owner_of(host),
        queue=queue or queue_of_device(facts.name),
        gpu=facts.uuid,
        served=gpu or ("0" if facts.uuid else "cpu"),
        data_dir=settings.data_dir.absolute(),
    )
    serve(settings, place, exit_when_idle_s=exit_when_idle, max_trials=max_trials)
    return 0


def _choose(gpu: str | None) -> DeviceFacts:
    """The GPU to serve, the only one that this process and its children see from here on.

    No facts stand for the CPU. Raises ConfigError for a GPU that is not there.
    """
    if gpu == "cpu":
        return DeviceFacts()
    number = gpu is None or gpu.isdecimal()
    if gpu is not None and not number:
        os.environ["CUDA_VISIBLE_DEVICES"] = gpu
    facts = device_facts(f"cuda:{gpu or 0}" if number else "cuda:0")
    if facts.uuid is None:
        if gpu is None:
            return facts
        raise ConfigError(f"There is no GPU {gpu} here.", "`nvidia-smi -L` shows which there are.")
    os.environ["CUDA_VISIBLE_DEVICES"] = facts.uuid
    return facts
