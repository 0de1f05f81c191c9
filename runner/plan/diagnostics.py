"""Diagnostics of a trial: each is a process of its own after the timed one."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Diagnostics:
    """`profile`: a few steps under torch.profiler. `trace_into`: the data directory that gets the compiler's
    own log of a cold compilation; None for no log. `bisect_s`: how long to seek the part of the compiler that
    makes a trial fail, in seconds; 0 does not seek it.
    """

    profile: bool = False
    trace_into: Path | None = None
    bisect_s: float = 0.0

    @property
    def follow(self) -> bool:
        """Whether a process follows a trial that succeeded."""
        return self.profile or self.trace_into is not None


NO_DIAGNOSTICS = Diagnostics()
