"""What a page was never sent to a reader, its socket may still be told: a viewer writes nothing by it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import anyio
import pytest
from sqlalchemy import func, select
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Origin

from dashboard.server.server import PROTOCOL_ERROR, SocketFrames
from db.engine.session import open_database
from db.records.access import Roles
from db.tables.trials import METADATA
from tests.dashboard.browsing import Browser
from tests.dashboard.serving import SignInServer, served_with_sign_in


def cookie_of(place: SignInServer, group: str) -> str:
    """The cookie of somebody of `group`."""
    place.provider.person = {"sub": group, "email": f"{group}@example.com", "groups": [group]}
    browser = Browser()
    browser.open(place.server.origin + "/")
    named = browser.cookie(f"127.0.0.1:{place.server.port}", "compilewatch")
    assert named is not None
    return f"compilewatch={named.value}"


def row_counts(place: SignInServer) -> dict[str, int]:
    """How many rows every table has."""
    with open_database(place.url, read_only=True) as database, database.read() as connection:
        return {
            table.name: connection.scalar(select(func.count()).select_from(table)) or 0
            for table in METADATA.sorted_tables
        }


@pytest.fixture(scope="module")
def place(recorded_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SignInServer]:
    roles = Roles(viewers=("readers",), operators=("leads",))
    with served_with_sign_in(recorded_url, tmp_path_factory.mktemp("forged"), roles) as running:
        yield running


@dataclass(frozen=True)
class Reader:
    """One page over its socket, as the program in a browser drives it."""

    socket: ClientConnection
    page: str

    def run(self, **states: Any) -> dict[str, str]:
        """Run the page with states by the id of their widget: the ids of what it draws, by their keys."""
        asked = BackMsg()
        asked.rerun_script.page_name = self.page
        for widget, value in states.items():
            state = asked.rerun_script.widget_states.widgets.add(id=widget)
            setattr(state, "trigger_value" if value is True else "string_value", value)
        self.socket.send(asked.SerializeToString())
        found: dict[str, str] = {}
        while True:
            data = self.socket.recv(timeout=60)
            assert isinstance(data, bytes)
            message = ForwardMsg.FromString(data)
            if message.WhichOneof("type") == "delta":
                element = message.delta.new_element
                drawn = getattr(element, element.WhichOneof("type") or "", None)
                widget = getattr(drawn, "id", "") if drawn is not None else ""
                if isinstance(widget, str) and widget.startswith("$$ID-"):
                    found[widget.split("-", 2)[2]] = widget
            if message.WhichOneof("type") == "script_finished":
                return found


@contextmanager
def runs_page(place: SignInServer, group: str) -> Iterator[Reader]:
    """The Runs page of somebody of `group`."""
    with connect(
        f"ws://127.0.0.1:{place.server.port}/_stcore/stream",
        origin=Origin(place.server.origin),
        additional_headers={"Cookie": cookie_of(place, group)},
        max_size=None,
    ) as socket:
        yield Reader(socket, "runs")


def test_a_viewer_who_presses_what_only_operators_see_writes_nothing(place: SignInServer) -> None:
    """The ids of buttons are the same for everybody, so a viewer can tell the socket that one was pressed."""
    with runs_page(place, "leads") as operator, runs_page(place, "readers") as viewer:
        offered = operator.run()
        assert {"ask-yes", "import-format"} <= set(offered)
        assert not {"ask-yes", "import-format"} & set(viewer.run())
        before = row_counts(place)
        buttons = {widget: True for key, widget in offered.items() if key.endswith(("yes", "no"))}
        for _ in range(2):
            viewer.run(**buttons)
        assert row_counts(place) == before
        # The same message of the operator does write: what was forged is what a page would send.
        operator.run(**{offered["ask-yes"]: True})
        assert row_counts(place)["run_request"] == before["run_request"] + 1


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
