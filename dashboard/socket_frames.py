"""What opens a socket is answered, and what comes over it is a message of Streamlit's or ends it.

Streamlit answers a text with a traceback in the log, and a page fails on the state of what is no widget.
Messages of its developers' tools are passed over: they list the files of this checkout, and empty the cache
of everybody.
"""

from __future__ import annotations

import logging

import uvicorn.config
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.runtime.state.common import is_element_id
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

# Close code of the socket protocol for a peer that speaks otherwise.
PROTOCOL_ERROR = 1002
_LOG = logging.getLogger("compilewatch.dashboard")


_NEEDED = frozenset({"rerun_script", "stop_script", "app_heartbeat", "file_urls_request"})
_NEEDED_OPERATIONS = frozenset({"deferred_file", "dataframe_chunk"})


class SocketFrames:
    """Closes a socket at its first frame that is no message; hands on those that pages need."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "websocket":
            await self._app(scope, receive, send)
            return
        closed = False

        async def receive_messages() -> Message:
            nonlocal closed
            while (found := await receive())["type"] == "websocket.receive":
                message = _message(found.get("bytes"))
                if message is None:
                    _LOG.warning("a socket was closed: its frame is no message of a page")
                    closed = True
                    await send({"type": "websocket.close", "code": PROTOCOL_ERROR})
                    return {"type": "websocket.disconnect", "code": PROTOCOL_ERROR}
                if _is_needed(message):
                    break
            return found

        async def send_while_open(message: Message) -> None:
            if not closed:
                await send(message)

        await self._app(scope, receive_messages, send_while_open)


def _message(data: bytes | None) -> BackMsg | None:
    """What Streamlit's pages send, with states of widgets alone; None for anything else."""
    try:
        message = None if data is None else BackMsg.FromString(data)
    except Exception:  # noqa: BLE001 - of protobuf, which is Streamlit's and not ours
        return None
    if message is None:
        return None
    widgets = message.rerun_script.widget_states.widgets
    return message if all(is_element_id(state.id) for state in widgets) else None


def _is_needed(message: BackMsg) -> bool:
    """Whether the pages of a reader send it."""
    kind = message.WhichOneof("type")
    if kind == "backend_operation_request":
        return message.backend_operation_request.WhichOneof("payload") in _NEEDED_OPERATIONS
    return kind in _NEEDED


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
