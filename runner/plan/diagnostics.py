"""Diagnostics of a trial: each is a process of its own after the timed one."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Diagnostics:
    """`profile`: a few steps under torch.profiler. `trace_into`: the data directory that gets the compiler's
    own log of a cold compilation; None for no log.
    """

    profile: bool = False
    trace_into: Path | None = None


NO_DIAGNOSTICS = Diagnostics()
