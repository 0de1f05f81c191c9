"""The names of queues, tasks and locks on both sides, and what a fleet needs before anything is started."""

from __future__ import annotations

import importlib.util
import re

from compilewatch.db.errors import ConfigError

TASK = "compilewatch.measure"
MOST_ATTEMPTS = 5
"""A trial whose worker died this often is recorded as a crash instead of being tried again."""
LONGEST_WAIT_S = 15.0
"""Between two tries of a worker to reach a database that is away."""

_GPU, _HOST = "gpu:", "host:"


def queue_of_device(device_name: str | None) -> str:
    """The machine type as a queue: "NVIDIA H200" is "nvidia-h200", no device "cpu"."""
    return re.sub(r"[^a-z0-9.]+", "-", (device_name or "cpu").lower()).strip("-")


def queue_of_host(host: str) -> str:
    """Every worker of one host."""
    return f"{_HOST}{host}"


def queues_of_worker(machine_type: str, host: str, gpu: str | None) -> list[str]:
    """What a worker listens to: its machine type, its host, and the one GPU it serves."""
    return [machine_type, queue_of_host(host), *([f"{_GPU}{gpu}"] if gpu else [])]


def lock_of_queue(queue: str) -> str | None:
    """Jobs for one GPU take turns in the queue already; else the GPU's lock on its host sees to that."""
    return queue if queue.startswith(_GPU) else None


def is_direct(queue: str) -> bool:
    """Whether the name means one host or one GPU rather than a machine type."""
    return queue.startswith((_GPU, _HOST))


def require_fleet(database_url: str) -> None:
    """Raises ConfigError where the database is not PostgreSQL, or the extra is not installed."""
    if not database_url.startswith(("postgresql", "postgres:")):
        raise ConfigError(
            "A fleet needs a database on PostgreSQL: workers on other hosts share it.",
            "Name one with --db postgresql://USER@HOST/NAME, or leave [fleet] queues empty to measure here.",
        )
    if importlib.util.find_spec("procrastinate") is None:
        raise ConfigError(
            "The queue of a fleet, procrastinate, is not installed.",
            "Run `pip install 'compilewatch[fleet]'`.",
        )
