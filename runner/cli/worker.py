"""`compilewatch worker`: measures on one GPU of this host what services queue."""

from __future__ import annotations

import os
import socket
import sys
from typing import Annotated

import typer

from db.errors import ConfigError
from runner.cli.options import ConfigOption, DatabaseOption, settings_of
from runner.config.settings import Settings
from runner.device.lock import default_lock_dir
from runner.device.state import DeviceFacts, device_facts
from runner.fleet.names import queue_of_device, queues_of_worker
from runner.fleet.requirements import require_fleet
from runner.service.owner import owner_of


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
    _become_listener(_worker_settings(facts, gpu, queue, exit_when_idle, max_trials, settings), settings)
    return 0


def _worker_settings(
    facts: DeviceFacts,
    gpu: str | None,
    queue: str | None,
    exit_when_idle_s: float | None,
    max_trials: int | None,
    settings: Settings,
) -> bytes:
    """What the waiting program is told; `gpu` and `queue` as they were given here."""
    from runner.fleet.host_watch import WorkerPlace
    from runner.fleet.listener import WorkerSettings
    from runner.fleet.queue import conninfo_of

    host, machine_type = socket.gethostname(), queue or queue_of_device(facts.name)
    return WorkerSettings(
        conninfo=conninfo_of(settings.database_url),
        queues=queues_of_worker(machine_type, host, facts.uuid),
        place=WorkerPlace(
            host=host,
            owner=owner_of(host),
            queue=machine_type,
            device="cuda:0" if facts.uuid else "cpu",
            served=gpu or ("0" if facts.uuid else "cpu"),
            data_dir=str(settings.data_dir.absolute()),
        ),
        gpu=facts.uuid,
        config=str(settings.config_file or ""),
        lock_dir=str(default_lock_dir()),
        heartbeat_s=settings.fleet.heartbeat_s,
        stalled_s=settings.fleet.stalled_s,
        idle_s=settings.fleet.idle_s,
        log_format=settings.service.log_format,
        exit_when_idle_s=exit_when_idle_s,
        max_trials=max_trials,
    ).to_json()


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


def _become_listener(message: bytes, settings: Settings) -> None:
    """Go on as the waiting program: what reading the configuration took up in memory is given back."""
    reading, writing = os.pipe()
    os.write(writing, message)
    os.close(writing)
    os.set_inheritable(reading, True)
    # The measuring process reads the configuration again, with the address that was given here.
    os.environ["COMPILEWATCH_DATABASE_URL"] = settings.database_url
    program = ["-m", "runner.fleet.listener", str(reading)]
    sys.stdout.flush()
    os.execv(sys.executable, [sys.executable, *program])  # noqa: S606
