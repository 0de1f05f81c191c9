"""The measured process's own pipe to the runner: phase marks as they happen, facts, one record at the end."""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

SLOWED = b"slowed\n"
"""The runner's answer to a pause when the device is below its clock for heat or lack of power."""


class Channel:
    """One JSON object per line on `descriptor`; never stdout, where models print."""

    def __init__(self, descriptor: int) -> None:
        os.set_inheritable(descriptor, False)
        self._descriptor = descriptor
        self.phase = "interpreter"

    def _write(self, content: dict[str, Any]) -> None:
        data = json.dumps(content, allow_nan=False).encode() + b"\n"
        while data:
            data = data[os.write(self._descriptor, data) :]

    def enter(self, phase: str) -> None:
        """Say what begins now, so that a process that is killed still tells how far it came."""
        self.phase = phase
        self._write({"mark": "phase", "phase": phase, "at_ns": time.monotonic_ns()})

    def facts(self, machine: dict[str, Any], build: dict[str, Any]) -> None:
        """What this process runs on; early, so that a failed trial has it too."""
        self._write({"mark": "facts", "machine": machine, "build": build})

    def pause(self, side: str = "") -> bool:
        """Let the runner read the device's state after a timed block of `side`, or before the first one;
        whether the device was slowed.
        """
        self._write({"mark": "pause", "side": side})
        return sys.stdin.buffer.readline() == SLOWED

    def record(self, content: dict[str, Any]) -> None:
        """The last line: everything that was measured, or the failure."""
        self._write({"mark": "record", "record": content})
