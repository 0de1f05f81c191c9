"""The waiting worker's side of the process that measures: started, kept ready for a while, ended."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
from typing import Any

_END_WITHIN_S = 15.0


class CompanionDiedError(Exception):
    """The measuring process ended without an answer."""


class Companion:
    """At most one process of `runner.fleet.measurer`; after `idle_s` without a job there is none."""

    def __init__(self, device: str, config: str, *, idle_s: float) -> None:
        self._arguments = [device, config]
        self._idle_s = idle_s
        self._process: asyncio.subprocess.Process | None = None
        self._idle: asyncio.TimerHandle | None = None
        self._measures = False

    async def measure(self, message: dict[str, Any], attempts: int) -> dict[str, Any]:
        """What became of one message. Raises CompanionDiedError; cancelled, the measurement goes on."""
        process = await self._started()
        request = {"do": "measure", "message": message, "attempts": attempts}
        self._measures = True
        await self._send(process, request)
        return await self._answer(process)

    async def cancel(self) -> None:
        """End what is measured now, if anything is, and wait until it is stored as cancelled."""
        process = self._process
        if process is None or not self._measures:
            return
        with contextlib.suppress(CompanionDiedError):
            await self._send(process, {"do": "cancel"})
            await self._answer(process)

    async def drop(self) -> None:
        """End the process with what it measures, unrecorded."""
        process, self._process = self._process, None
        self._measures = False
        self._keep_ready(False)
        if process is None:
            return
        assert process.stdin is not None
        process.stdin.close()
        try:
            await asyncio.wait_for(process.wait(), _END_WITHIN_S)
        except TimeoutError:
            process.kill()
            await process.wait()

    async def _started(self) -> asyncio.subprocess.Process:
        self._keep_ready(False)
        if self._process is None or self._process.returncode is not None:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "runner.fleet.measurer",
                str(os.getpid()),
                *self._arguments,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                # Ctrl-C reaches the whole group of a terminal, and this process while it still imports.
                process_group=0,
            )
        return self._process

    async def _send(self, process: asyncio.subprocess.Process, content: dict[str, Any]) -> None:
        assert process.stdin is not None
        try:
            process.stdin.write(json.dumps(content).encode() + b"\n")
            await process.stdin.drain()
        except OSError as error:
            raise await self._died(process) from error

    async def _answer(self, process: asyncio.subprocess.Process) -> dict[str, Any]:
        assert process.stdout is not None
        line = await process.stdout.readline()
        if not line:
            raise await self._died(process)
        self._measures = False
        self._keep_ready(True)
        answer: dict[str, Any] = json.loads(line)
        return answer

    async def _died(self, process: asyncio.subprocess.Process) -> CompanionDiedError:
        code = await process.wait()
        self._process, self._measures = None, False
        how = f"signal {-code}" if code < 0 else f"exit code {code}"
        return CompanionDiedError(f"The measuring process ended with {how}.")

    def _keep_ready(self, ready: bool) -> None:
        """Begin to count the idle seconds, or stop counting."""
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None
        if ready:
            self._idle = asyncio.get_running_loop().call_later(self._idle_s, self._retire)

    def _retire(self) -> None:
        self._idle = None
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()
            self._process = None
