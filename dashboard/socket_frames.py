"""What opens a socket is answered, and what comes over it is a message of Streamlit's or ends it.

Streamlit answers a text with a traceback in the log, and a page fails on the state of what is no widget.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

import uvicorn.config
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

# Close code of the socket protocol for a peer that speaks otherwise.
PROTOCOL_ERROR = 1002
_LOG = logging.getLogger("compilewatch.dashboard")


class SocketFrames:
    """Closes a socket at its first frame that `is_message` does not take for one."""

    def __init__(self, app: ASGIApp, *, is_message: Callable[[bytes], bool]) -> None:
        self._app = app
        self._is_message = is_message

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "websocket":
            await self._app(scope, receive, send)
            return
        closed = False

        async def receive_messages() -> Message:
            nonlocal closed
            found = await receive()
            if found["type"] != "websocket.receive":
                return found
            data = found.get("bytes")
            if data is not None and self._is_message(data):
                return found
            _LOG.warning("a socket was closed: its frame is no message of a page")
            closed = True
            await send({"type": "websocket.close", "code": PROTOCOL_ERROR})
            return {"type": "websocket.disconnect", "code": PROTOCOL_ERROR}

        async def send_while_open(message: Message) -> None:
            if not closed:
                await send(message)

        await self._app(scope, receive_messages, send_while_open)


class AnsweredHandshake(WebSocketsSansIOProtocol):
    """A socket of uvicorn's that refuses what asks for one and is no request for one, such as a PUT.

    uvicorn gives it no answer, keeps it open, and fails on it when the server ends.
    """

    def data_received(self, data: bytes) -> None:
        """Hand on what came; hang up, with an answer, where it opens no socket."""
        super().data_received(data)
        if self.conn.handshake_exc is not None and not self.handshake_initiated:
            self.handshake_initiated = self.handshake_complete = self.close_sent = True
            self.transport.write(b"".join(self.conn.data_to_send()) or _BAD_REQUEST)
            self.transport.close()


def answer_handshakes() -> None:
    """From now on the servers of this process answer as `AnsweredHandshake` does."""
    uvicorn.config.WS_PROTOCOLS["websockets-sansio"] = f"{__name__}:{AnsweredHandshake.__name__}"


_BAD_REQUEST = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
