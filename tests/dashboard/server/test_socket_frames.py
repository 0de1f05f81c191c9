"""Messages of a socket that only the tools of developers send: they do not reach Streamlit."""

from __future__ import annotations

from typing import Any

import anyio
import pytest
from streamlit.proto.BackMsg_pb2 import BackMsg

from dashboard.server.server import PROTOCOL_ERROR, SocketFrames

NEEDED = {
    "rerun_script": lambda message: message.rerun_script.SetInParent(),
    "stop_script": lambda message: setattr(message, "stop_script", True),
    "app_heartbeat": lambda message: setattr(message, "app_heartbeat", True),
    "file_urls_request": lambda message: message.file_urls_request.SetInParent(),
    "deferred_file": lambda message: message.backend_operation_request.deferred_file.SetInParent(),
    "dataframe_chunk": lambda message: message.backend_operation_request.dataframe_chunk.SetInParent(),
}
OTHERS = {
    "clear_cache": lambda message: setattr(message, "clear_cache", True),
    "load_git_info": lambda message: setattr(message, "load_git_info", True),
    "set_run_on_save": lambda message: setattr(message, "set_run_on_save", True),
    "debug_shutdown_runtime": lambda message: setattr(message, "debug_shutdown_runtime", True),
    "debug_disconnect_websocket": lambda message: setattr(message, "debug_disconnect_websocket", True),
    "install_skills": lambda message: message.backend_operation_request.install_skills.SetInParent(),
    "dismiss": lambda message: message.backend_operation_request.dismiss_skills_nudge.SetInParent(),
    "nothing": lambda message: None,
}


def _handed_on(*frames: dict[str, Any]) -> tuple[list[bytes], list[Any]]:
    """What an application behind the middleware gets of these frames, and what is sent."""
    arriving = iter(
        [*({"type": "websocket.receive"} | frame for frame in frames), {"type": "websocket.disconnect"}]
    )
    got: list[bytes] = []
    sent: list[Any] = []

    async def receive() -> Any:
        return next(arriving)

    async def send(message: Any) -> None:
        sent.append(message)

    async def app(_scope: Any, receive: Any, _send: Any) -> None:
        while (found := await receive())["type"] == "websocket.receive":
            got.append(found["bytes"])

    async def run() -> None:
        await SocketFrames(app)({"type": "websocket"}, receive, send)

    anyio.run(run)
    return got, sent


@pytest.mark.parametrize("kind", [*NEEDED, *OTHERS])
def test_messages_of_developers_tools_are_passed_over(kind: str) -> None:
    """They list the files of the checkout to whoever asks, and clear what is prepared for all."""
    message = BackMsg()
    (NEEDED | OTHERS)[kind](message)
    whole = {"bytes": message.SerializeToString()}
    last = {"bytes": BackMsg(stop_script=True).SerializeToString()}
    got, sent = _handed_on(whole, last)
    assert got == ([whole["bytes"]] if kind in NEEDED else []) + [last["bytes"]]
    assert sent == []
    got, sent = _handed_on(whole, {"text": "text"}, last)
    assert len(got) == (kind in NEEDED)
    assert sent == [{"type": "websocket.close", "code": PROTOCOL_ERROR}]
