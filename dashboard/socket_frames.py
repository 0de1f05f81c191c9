"""What comes over a socket is a message of Streamlit's or ends it: ASGI middleware.

Streamlit answers a text with a traceback in the log, and a page fails on the state of what is no widget.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from starlette.types import ASGIApp, Message, Receive, Scope, Send

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
