"""Signing in through a real provider at a real server: what is closed, what opens, what is believed, and what
the socket of a viewer may do that was never sent to one.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

import pytest
from joserfc.jwk import RSAKey
from sqlalchemy import func, select
from starlette.routing import Mount, WebSocketRoute
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Origin

from compilewatch.dashboard.login.middleware import OPEN
from compilewatch.db.engine.session import open_database
from compilewatch.db.engine.tables import METADATA
from compilewatch.db.records.access import Roles, Scope, SignIn, Token, new_secret, secret_hash
from compilewatch.db.service.tokens import TOKENS, revoke_token
from tests.dashboard.asking import ask, whole_application
from tests.dashboard.browsing import Browser
from tests.dashboard.provider import CLIENT_ID, CLIENT_SECRET, FakeProvider
from tests.dashboard.serving import Served, SignInServer, free_port, served_with_sign_in

DEEP_LINK = "/modes?workload=bert-base&strategy=default"
SECRET = new_secret()
PARAMETERS = {"path:path": "x/y.js", "workload:path": "mlp", "name:page": "nowhere"}


@pytest.fixture(autouse=True)
def _straight(provider: FakeProvider) -> Iterator[None]:
    before = replace(provider)
    yield
    for name in ("person", "bend", "key", "published", "algorithm", "refuses"):
        setattr(provider, name, getattr(before, name))


@pytest.fixture(scope="module")
def place(filled_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SignInServer]:
    folder = tmp_path_factory.mktemp("login")
    roles = Roles(viewers=("engineering",), editors=("performance",), operators=("leads",))
    with served_with_sign_in(filled_url, folder, roles) as running:
        yield running
    written = (folder / "log").read_text()
    assert CLIENT_SECRET not in written
    assert SECRET not in written


@pytest.fixture(scope="module")
def server(place: SignInServer) -> Served:
    return place.server


@pytest.fixture(scope="module")
def provider(place: SignInServer) -> FakeProvider:
    return place.provider


@pytest.fixture(scope="module")
def tokens(place: SignInServer) -> dict[str, Token]:
    made: dict[str, Token] = {}
    now = datetime.now(UTC)
    with open_database(place.url) as database:
        for name, scopes, ends in (
            ("api", (Scope.API,), None),
            ("metrics", (Scope.METRICS,), None),
            ("old", (Scope.API,), now - timedelta(seconds=1)),
        ):
            secret = SECRET if name == "api" else f"{SECRET}-{name}"
            made[name] = Token(
                token_id=name,
                name=name,
                secret_hash=secret_hash(secret),
                scopes=scopes,
                created_at=now,
                created_by="ada",
                expires_at=ends,
            )
            TOKENS.add(database, made[name])
    return made


@cache
def routes() -> list[tuple[str, str, list[str]]]:
    """Kind, path and methods of every route, found by walking the application that is served."""
    with whole_application() as app:
        return list(_walk(app.routes))


def _walk(routes: Iterable[Any], prefix: str = "") -> Iterator[tuple[str, str, list[str]]]:
    for route in routes:
        if isinstance(route, Mount) and getattr(route.app, "routes", None):
            yield from _walk(route.routes, prefix + route.path)
        elif isinstance(route, Mount):
            yield "http", prefix + route.path + "/index.html", ["GET"]
        elif isinstance(route, WebSocketRoute):
            yield "websocket", prefix + route.path, ["GET"]
        else:
            yield "http", prefix + route.path, sorted(route.methods or ["GET"])


def concrete(path: str) -> str:
    """`path` with something in the place of its parameters."""
    while "{" in path:
        before, _, rest = path.partition("{")
        name, _, after = rest.partition("}")
        path = before + PARAMETERS.get(name, "something") + after
    return path


def test_every_route_is_closed_to_the_signed_out(server: Served) -> None:
    found = routes()
    paths = {path for _, path, _ in found}
    # The walk finds what it must: ours, Streamlit's own, and the socket.
    assert {"/metrics", "/_stcore/stream", "/_stcore/host-config"} <= paths
    assert any(path.startswith("/api/v1/") for path in paths)
    assert any("/media/" in path for path in paths)
    assert any("upload_file" in path for path in paths)
    asked = [(kind, path, method) for kind, path, methods in found for method in methods if path not in OPEN]
    answers = {
        (kind, path, method): server.ask(method, concrete(path), _headers(server, kind)).status
        for kind, path, method in asked
    }
    # A socket is closed before it is opened, which HTTP tells as 403.
    closed = {"http": 401, "websocket": 403}
    assert [asked for asked, status in answers.items() if status != closed[asked[0]]] == []
    assert len(answers) > 60


def _headers(server: Served, kind: str) -> dict[str, str]:
    return {"Origin": server.origin} | (_UPGRADE if kind == "websocket" else {})


_UPGRADE = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
}


def test_a_file_of_the_program_is_closed_too(server: Served) -> None:
    page = Browser().ask("GET", f"{server.origin}/static/js/index.js", Accept_Encoding="gzip")
    assert page.status == 303
    assert server.get("/static/js/index.js", accept_encoding="gzip").status == 401


def test_a_deep_link_survives_the_login(server: Served, provider: FakeProvider) -> None:
    browser = Browser()
    answer = browser.open(server.origin + DEEP_LINK)
    assert answer.status == 200
    assert browser.steps[0] == browser.steps[-1] == server.origin + DEEP_LINK
    assert any(step.startswith(provider.issuer) for step in browser.steps)
    assert b"<title>" in answer.body
    # And from then on nobody is asked again.
    browser.open(server.origin + "/")
    assert browser.steps == [server.origin + "/"]


def test_the_cookie_is_for_this_server_alone(server: Served) -> None:
    browser = Browser()
    browser.open(server.origin + "/")
    morsel = browser.cookie(server.origin.removeprefix("http://"), "compilewatch")
    assert morsel["httponly"]
    assert morsel["samesite"] == "lax"
    assert morsel["path"] == "/"
    assert not morsel["domain"]
    assert int(morsel["max-age"]) == 12 * 3600


def test_signing_out_ends_the_session_wherever_its_cookie_is(server: Served) -> None:
    browser = Browser()
    browser.open(server.origin + "/")
    netloc = server.origin.removeprefix("http://")
    stolen = f"compilewatch={browser.cookie(netloc, 'compilewatch').value}"  # type: ignore[union-attr]
    assert server.get("/metrics", cookie=stolen).status == 200
    # A link from elsewhere only asks; another site's form is refused.
    assert browser.ask("GET", f"{server.origin}/logout").status == 200
    assert server.get("/metrics", cookie=stolen).status == 200
    leave = f"{server.origin}/logout"
    refused = browser.ask("POST", leave, Origin="https://evil.example", Content_Length="0")
    assert refused.status == 403
    assert server.get("/metrics", cookie=stolen).status == 200
    done = browser.ask("POST", leave, Origin=server.origin, Content_Length="0")
    assert (done.status, done.headers["location"]) == (303, "/signed-out")
    assert browser.cookie(netloc, "compilewatch") is None
    assert server.get("/metrics", cookie=stolen).status == 401


def test_nobody_can_be_led_to_another_site(server: Served) -> None:
    for elsewhere in ("https://evil.example/", "//evil.example/", "/\\evil.example", "javascript:alert(1)"):
        browser = Browser()
        browser.open(f"{server.origin}/login?next={elsewhere}")
        assert browser.steps[-1] == f"{server.origin}/"


def test_a_login_belongs_to_the_browser_that_began_it(server: Served) -> None:
    """Otherwise somebody could sign another one in as themselves."""
    theirs, mine = Browser(), Browser()
    begun = theirs.ask("GET", f"{server.origin}/login")
    back = theirs.ask("GET", begun.headers["location"]).headers["location"]
    answer = mine.ask("GET", back)
    assert answer.status == 403
    assert b"another browser" in answer.body
    # And no answer counts twice.
    assert theirs.ask("GET", back).status == 403


def _renamed(**changes: Any) -> Any:
    return lambda claims: claims | changes


@pytest.mark.parametrize(
    "bend",
    [
        _renamed(iss="https://evil.example"),
        _renamed(aud="another-program"),
        _renamed(aud=["compilewatch", "another-program"]),
        _renamed(exp=1_000_000_000),
        _renamed(nonce="of another login"),
        _renamed(email=None),
        _renamed(email_verified=False),
        _renamed(groups=["somebody-else"]),
        _renamed(groups={"performance": True}),
        lambda claims: {name: claims[name] for name in claims if name != "nonce"},
        lambda claims: {name: claims[name] for name in claims if name != "exp"},
    ],
)
def test_what_a_provider_must_not_say_is_not_believed(
    server: Served, provider: FakeProvider, bend: Any
) -> None:
    provider.bend = bend
    answer = Browser().open(server.origin + "/")
    assert answer.status == 403
    assert b"Traceback" not in answer.body


def test_a_signature_of_somebody_else_is_not_believed(server: Served, provider: FakeProvider) -> None:
    provider.published, provider.key = provider.key, RSAKey.generate_key(2048, {"kid": "first"})
    assert Browser().open(server.origin + "/").status == 403


def test_new_keys_of_the_provider_are_fetched(server: Served, provider: FakeProvider) -> None:
    assert Browser().open(server.origin + "/").status == 200
    provider.key = RSAKey.generate_key(2048, {"kid": "first"})
    assert Browser().open(server.origin + "/").status == 200


def test_who_is_refused_there_is_refused_here(server: Served, provider: FakeProvider) -> None:
    provider.refuses = True
    answer = Browser().open(server.origin + "/")
    assert answer.status == 403
    assert b"did not let you sign in" in answer.body


def test_a_token_opens_its_scope_and_nothing_else(server: Served, tokens: dict[str, Token]) -> None:
    def asked(path: str, secret: str) -> int:
        return server.get(path, authorization=f"Bearer {secret}").status

    assert asked("/api/v1/runs", SECRET) == 200
    assert asked("/api/v1/openapi.json", SECRET) == 200
    assert asked("/metrics", SECRET) == 403
    assert asked("/", SECRET) == 403
    assert asked("/_stcore/host-config", SECRET) == 403
    assert asked("/metrics", f"{SECRET}-metrics") == 200
    assert asked("/api/v1/runs", f"{SECRET}-metrics") == 403
    assert asked("/api/v1/runs", f"{SECRET}-old") == 401
    assert asked("/api/v1/runs", SECRET + "x") == 401
    assert asked("/api/v1/runs", "something else") == 401


def test_a_revoked_token_opens_nothing_at_once(place: SignInServer, tokens: dict[str, Token]) -> None:
    server = place.server
    secret = f"{SECRET}-metrics"
    assert server.get("/metrics", authorization=f"Bearer {secret}").status == 200
    with open_database(place.url) as database:
        revoke_token(database, "metrics", at=datetime.now(UTC), by="ada")
    assert server.get("/metrics", authorization=f"Bearer {secret}").status == 401


def _cookie_of(place: SignInServer, group: str) -> str:
    """The cookie of somebody of `group`."""
    place.provider.person = {"sub": group, "email": f"{group}@example.com", "groups": [group]}
    browser = Browser()
    browser.open(place.server.origin + "/")
    named = browser.cookie(f"127.0.0.1:{place.server.port}", "compilewatch")
    return f"compilewatch={named.value}"


def _row_counts(place: SignInServer) -> dict[str, int]:
    """How many rows every table has."""
    with open_database(place.url, read_only=True) as database, database.read() as connection:
        return {
            table.name: connection.scalar(select(func.count()).select_from(table)) or 0
            for table in METADATA.sorted_tables
        }


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
def _runs_page(place: SignInServer, group: str) -> Iterator[Reader]:
    """The Runs page of somebody of `group`."""
    with connect(
        f"ws://127.0.0.1:{place.server.port}/_stcore/stream",
        origin=Origin(place.server.origin),
        additional_headers={"Cookie": _cookie_of(place, group)},
        max_size=None,
    ) as socket:
        yield Reader(socket, "runs")


def test_a_viewer_who_presses_what_only_operators_see_writes_nothing(place: SignInServer) -> None:
    """The ids of buttons are the same for everybody, so a viewer can tell the socket that one was pressed."""
    with _runs_page(place, "leads") as operator, _runs_page(place, "engineering") as viewer:
        offered = operator.run()
        assert {"ask-yes", "import-format"} <= set(offered)
        assert not {"ask-yes", "import-format"} & set(viewer.run())
        before = _row_counts(place)
        buttons = {widget: True for key, widget in offered.items() if key.endswith(("yes", "no"))}
        for _ in range(2):
            viewer.run(**buttons)
        assert _row_counts(place) == before
        # The same message of the operator does write: what was forged is what a page would send.
        operator.run(**{offered["ask-yes"]: True})
        assert _row_counts(place)["run_request"] == before["run_request"] + 1


def test_no_address_is_forged_at_a_real_server(server: Served) -> None:
    """From this machine, where uvicorn believes everybody unless it is told not to."""
    answers = [server.get("/login", X_Forwarded_For=f"198.51.{n}.9").status for n in range(90)]
    assert 429 in answers
    assert set(answers) == {303, 429}
    until = time.monotonic() + 20
    while server.get("/login").status == 429 and time.monotonic() < until:
        time.sleep(0.5)


def test_health_is_open(server: Served) -> None:
    assert server.get("/healthz").status == 200
    assert server.get("/_stcore/health").status == 200


def test_an_absent_provider_is_a_sentence() -> None:
    settings = SignIn(
        base_url="http://127.0.0.1:8501",
        issuer=f"http://127.0.0.1:{free_port()}",
        client_id=CLIENT_ID,
        client_secret=CLIENT_SECRET,
        roles=Roles(everyone="viewer"),
    )
    with whole_application(sign_in=settings) as app:
        answer = ask(app, "/login", accept="text/html")
    assert answer.status == 503
    assert b"does not answer as one" in answer.body
