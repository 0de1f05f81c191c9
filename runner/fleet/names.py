"""The names of queues, tasks and locks on both sides."""

from __future__ import annotations

import re

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
