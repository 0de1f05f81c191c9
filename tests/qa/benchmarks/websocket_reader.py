"""A reader of the dashboard without a browser: speaks the websocket, runs pages, counts bytes and seconds."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.asyncio.client import ClientConnection, connect

from compilewatch.dashboard.links.links import Page

TIMEOUT_S = 120


@dataclass(frozen=True)
class Ran:
    """One run of a page's script: how long the reader waited, and what came over the socket."""

    seconds: float
    received_bytes: int


@dataclass
class Reader:
    """One session. Like a browser, it tells which large messages it has already, so that they come once."""

    socket: ClientConnection
    origin: str
    received_bytes: int = 0
    known: set[str] = field(default_factory=set)

    async def run(self, page: Page, query: str = "") -> Ran:
        """Run `page` with the query string `query`; AssertionError where the page fails."""
        asked = BackMsg()
        asked.rerun_script.query_string = query
        asked.rerun_script.page_name = page.value
        asked.rerun_script.context_info.url = f"{self.origin}/{page.value}"
        asked.rerun_script.context_info.timezone = "UTC"
        asked.rerun_script.cached_message_hashes.extend(sorted(self.known))
        started, before = time.perf_counter(), self.received_bytes
        await self.socket.send(asked.SerializeToString())
        while True:
            message = await self._next()
            if message.WhichOneof("type") == "script_finished":
                assert message.script_finished != ForwardMsg.FINISHED_WITH_COMPILE_ERROR
                if message.script_finished != ForwardMsg.FINISHED_SUCCESSFULLY:
                    continue  # A part that looks for news, or a run that begins again since there was some.
                return Ran(time.perf_counter() - started, self.received_bytes - before)

    async def _next(self) -> ForwardMsg:
        data = await self.socket.recv(decode=False)
        self.received_bytes += len(data)
        message = ForwardMsg.FromString(data)
        if message.metadata.cacheable and message.hash:
            self.known.add(message.hash)
        element = message.delta.new_element
        assert not element.HasField("exception"), element.exception.message
        assert "This page failed" not in element.alert.body, "the page failed: see the server's log"
        return message


@asynccontextmanager
async def reading(port: int) -> AsyncIterator[Reader]:
    """A new session with the dashboard on 127.0.0.1."""
    origin = f"http://127.0.0.1:{port}"
    async with connect(
        f"ws://127.0.0.1:{port}/_stcore/stream",
        origin=origin,  # type: ignore[arg-type]  # its own type is only a new name of str
        subprotocols=["streamlit"],  # type: ignore[list-item]
        max_size=None,
        compression=None,
        open_timeout=TIMEOUT_S,
        # No browser asks whether the server still lives.
        ping_interval=None,
        proxy=None,
    ) as socket:
        yield Reader(socket, origin)
