"""Which device a run measures on."""

from __future__ import annotations

from collections.abc import Sequence

from db.errors import ConfigError
from runner.interpreter import InterpreterFacts


def resolve_device(device: str, facts: Sequence[InterpreterFacts]) -> str:
    """`device` as torch names it; "auto" is the first GPU that every interpreter can use, else the CPU.

    Raises ConfigError for a device that is not there.
    """
    count_of_all = min(fact.device_count for fact in facts)
    if device == "auto":
        return "cuda:0" if count_of_all else "cpu"
    kind, _, index = device.partition(":")
    if kind not in ("cpu", "cuda") or (index and not index.isdecimal()):
        raise ConfigError(f"There is no device {device!r}.", "Name auto, cpu, or a GPU such as cuda:0.")
    if kind == "cuda" and int(index or 0) >= count_of_all:
        raise ConfigError(
            f"There is no {device}: torch sees {count_of_all} GPUs.", "Use --device cpu, or check the driver."
        )
    return f"cuda:{index or 0}" if kind == "cuda" else "cpu"
