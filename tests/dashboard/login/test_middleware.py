"""The gate without a server: sessions that end, sockets that outlive them, untrusted proxies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from starlette.applications import Starlette
from starlette.responses import Response

from compilewatch.dashboard.http.rate_limit import Buckets
from compilewatch.dashboard.login import oidc
from compilewatch.dashboard.login.access import Person, Role
from compilewatch.dashboard.login.middleware import (
    SIGNED_OUT,
    WRONG_TOKENS_AT_ONCE,
    WRONG_TOKENS_PER_S,
    LoginMiddleware,
    People,
)
from compilewatch.dashboard.login.oidc import Provider
from compilewatch.dashboard.login.routes import LIMIT, LoginRoutes, safe_path
from compilewatch.dashboard.login.sessions import Sessions
from compilewatch.db.records.access import Proxy, Roles, SignIn, Token
from compilewatch.db.records.access import Scope as TokenScope
from tests.dashboard.asgi import Inner, socket, status
from tests.dashboard.asking import ask, whole_application
from tests.dashboard.conftest import DATABASE
from tests.dashboard.serving import free_port

ADA = Person("ada", Role.EDITOR)
OIDC = SignIn(
    base_url="http://127.0.0.1:8501",
    issuer="https://login.example",
    client_id="compilewatch",
    client_secret="s",
    roles=Roles(everyone="viewer"),
)
BEHIND_PROXY = SignIn(
    base_url="https://compilewatch.example",
    proxy=Proxy(addresses=("10.0.0.0/24",)),
    roles=Roles(viewers=("engineering",), operators=("leads",)),
)


@dataclass
class Clock:
    now: float = 0.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Gated:
    """A gate before an application, its sessions, and their clock."""

    gate: LoginMiddleware
    inner: Inner
    sessions: Sessions
    clock: Clock

    def cookie(self, person: Person = ADA) -> dict[str, str]:
        return {"Cookie": f"compilewatch={self.sessions.begin(person)}"}


@pytest.fixture
def gated() -> Callable[[SignIn], Gated]:
    def make(settings: SignIn) -> Gated:
        clock, inner = Clock(), Inner()
        sessions = Sessions(lasts_s=settings.session_hours * 3600, clock=clock)
        people = People(settings, sessions)
        gate = LoginMiddleware(inner, settings=settings, people=people, token_of=lambda _secret: None)
        gate._wrong_tokens = Buckets(WRONG_TOKENS_AT_ONCE, WRONG_TOKENS_PER_S, clock=clock)
        return Gated(gate, inner, sessions, clock)

    return make


def test_a_session_ends_when_its_time_is_over(gated: Callable[[SignIn], Gated]) -> None:
    behind = gated(OIDC)
    cookie = behind.cookie()
    behind.clock.now = 12 * 3600 - 1
    assert status(behind.gate, "/", cookie) == 200
    behind.clock.now = 12 * 3600
    assert status(behind.gate, "/", cookie) == 401


def test_a_socket_closes_with_the_first_message_after_its_session(
    gated: Callable[[SignIn], Gated],
) -> None:
    behind = gated(OIDC)
    cookie = behind.cookie()

    def later() -> None:
        behind.clock.now = 12 * 3600

    sent = socket(behind.gate, cookie, ["one", later, "two", "three"])
    assert [message.get("text") for message in sent if message["type"] == "websocket.send"] == ["echo one"]
    assert sent[-1] == {"type": "websocket.close", "code": SIGNED_OUT}


def test_nothing_is_sent_to_a_socket_whose_owner_signed_out(gated: Callable[[SignIn], Gated]) -> None:
    """A page that draws by itself has no message of its reader to be stopped at."""
    behind = gated(OIDC)
    cookie = behind.cookie()
    name = cookie["Cookie"].partition("=")[2]

    async def talks_by_itself(_scope: object, receive: object, send: object) -> None:
        await send({"type": "websocket.accept"})  # type: ignore[operator]
        await send({"type": "websocket.send", "text": "one"})  # type: ignore[operator]
        behind.sessions.end(name)
        await send({"type": "websocket.send", "text": "two"})  # type: ignore[operator]
        await send({"type": "websocket.send", "text": "three"})  # type: ignore[operator]

    behind.gate._app = talks_by_itself
    sent = socket(behind.gate, cookie, [])
    assert [message["type"] for message in sent] == ["websocket.accept", "websocket.send", "websocket.close"]


def test_with_https_the_cookie_travels_by_https_only(gated: Callable[[SignIn], Gated]) -> None:
    """And a browser takes one of that name from no other host, and for no other path."""
    safe = OIDC.model_copy(update={"base_url": "https://compilewatch.example"})
    sessions = Sessions(lasts_s=60)
    routes = LoginRoutes(safe, Provider(safe), sessions, People(safe, sessions))
    answer = Response()
    routes._set_cookie(answer, People(safe, sessions).cookie, "name", 60)
    told = answer.headers["set-cookie"].lower()
    assert told.startswith("__host-compilewatch=name;")
    assert {"secure", "httponly", "samesite=lax", "path=/"} <= {part.strip() for part in told.split(";")}
    assert "domain" not in told


def test_no_socket_opens_without_a_session(gated: Callable[[SignIn], Gated]) -> None:
    behind = gated(OIDC)
    for headers in ({}, {"Cookie": "compilewatch=made-up"}, {"Authorization": "Bearer cwt_anything"}):
        assert socket(behind.gate, headers, []) == [{"type": "websocket.close", "code": SIGNED_OUT}]
    assert behind.inner.seen == []


def test_public_badges_and_reports_are_open_when_said_so(gated: Callable[[SignIn], Gated]) -> None:
    closed = gated(OIDC)
    opened = gated(OIDC.model_copy(update={"public_badges": True, "public_reports": True}))
    for path in ("/badge/mlp/default.svg", "/report/abc"):
        assert status(closed.gate, path) == 401
        assert status(opened.gate, path) == 200
    assert status(opened.gate, "/api/v1/runs") == 401
    assert status(opened.gate, "/reports") == 401


def test_strangers_do_not_read_where_the_database_is(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """PostgreSQL is away; everything that is open before somebody has signed in."""
    address = f"postgresql://keeper@127.0.0.1:{free_port()}/vault"
    monkeypatch.setenv(DATABASE, address)
    opened = OIDC.model_copy(update={"public_badges": True, "public_reports": True})
    doors = [
        ("GET", "/healthz", {}),
        ("GET", "/badge/mlp/default.svg", {}),
        ("GET", "/badge/tally.svg", {}),
        ("GET", "/report/abc", {}),
        ("GET", "/api/v1/runs", {"authorization": "Bearer cwt_guess"}),
        ("GET", "/metrics", {"authorization": "Bearer cwt_guess"}),
    ]
    with whole_application(sign_in=opened) as app:
        answers = [ask(app, path, method=method, **headers) for method, path, headers in doors]
    assert [answer.status for answer in answers] == [503] * len(doors)
    assert all(b"The database cannot be read" in answer.body for answer in answers)
    told = " ".join(f"{answer.headers} {answer.body.decode()}" for answer in answers)
    for part in ("127.0.0.1:", "keeper", "vault", "postgresql"):
        assert part not in told
    assert "keeper" in caplog.text


def test_whoever_guesses_tokens_is_told_to_wait(gated: Callable[[SignIn], Gated]) -> None:
    """Each guess would cost a look into the database; others go on, and so does the guesser in a while."""
    behind = gated(OIDC)
    looked_up: list[str] = []
    behind.gate._token_of = lambda secret: looked_up.append(secret)  # type: ignore[func-returns-value]
    guess = {"Authorization": "Bearer cwt_guess"}
    answers = [status(behind.gate, "/api/v1/runs", guess, client="198.51.100.7") for _ in range(60)]
    assert answers[:20] == [401] * 20
    assert answers[-1] == 429
    assert len(looked_up) < 30
    assert status(behind.gate, "/api/v1/runs", guess, client="198.51.100.8") == 401
    assert status(behind.gate, "/", behind.cookie(), client="198.51.100.7") == 200


def test_one_address_cannot_crowd_out_the_logins_of_others() -> None:
    """Attempts are remembered up to a number: beginning more must not end those that were begun before."""
    lasts_s, at_once, per_s = oidc._ATTEMPT_LASTS_S, LIMIT.kwargs["burst"], LIMIT.kwargs["per_second"]
    assert at_once + lasts_s * per_s < oidc._MOST_ATTEMPTS
    sessions = Sessions(lasts_s=60)
    provider = Provider(OIDC)
    provider._metadata = {"issuer": OIDC.issuer, "authorization_endpoint": "https://login.example/in"}
    app = Starlette(routes=LoginRoutes(OIDC, provider, sessions, People(OIDC, sessions)).routes())
    statuses = [ask(app, "/login", client="198.51.100.7").status for _ in range(at_once + 20)]
    assert statuses[:at_once] == [303] * at_once
    assert statuses[-1] == 429
    assert ask(app, "/login", client="198.51.100.8").status == 303


SAYS_ADA = {"X-Forwarded-User": "ada@example.com", "X-Forwarded-Groups": "engineering, others"}


def test_only_the_trusted_proxy_is_believed(gated: Callable[[SignIn], Gated]) -> None:
    behind = gated(BEHIND_PROXY)
    assert status(behind.gate, "/", SAYS_ADA, client="10.0.0.7") == 200
    assert status(behind.gate, "/", SAYS_ADA, client="::ffff:10.0.0.7") == 200
    for elsewhere in ("10.0.1.7", "127.0.0.1", "::1", "not-an-address"):
        assert status(behind.gate, "/", SAYS_ADA, client=elsewhere) == 403
        assert socket(behind.gate, SAYS_ADA, [], client=elsewhere)[0]["code"] == SIGNED_OUT
    assert len(behind.inner.seen) == 2


def test_whom_the_proxy_does_not_name_is_nobody(gated: Callable[[SignIn], Gated]) -> None:
    behind = gated(BEHIND_PROXY)
    assert status(behind.gate, "/", {}, client="10.0.0.7") == 401
    assert status(behind.gate, "/", {"X-Forwarded-User": "  "}, client="10.0.0.7") == 401
    assert status(behind.gate, "/", {"X-Forwarded-User": "eve"}, client="10.0.0.7") == 403


def test_the_rate_limit_counts_the_reader_and_not_the_proxy(gated: Callable[[SignIn], Gated]) -> None:
    behind = gated(BEHIND_PROXY)
    forwarded = SAYS_ADA | {"X-Forwarded-For": "198.51.100.9, 203.0.113.4"}
    assert status(behind.gate, "/", forwarded, client="10.0.0.7") == 200
    assert behind.inner.seen[-1]["client"] == ("203.0.113.4", 0)


BEHIND_TWO = OIDC.model_copy(update={"proxies": ("10.0.0.0/24", "127.0.0.1/32", "fd00::/8")})


@pytest.mark.parametrize(
    ("forwarded", "reader"),
    [
        ("198.51.100.9", "198.51.100.9"),
        ("203.0.113.4, 198.51.100.9", "198.51.100.9"),
        ("198.51.100.9, 10.0.0.3", "198.51.100.9"),
        ("203.0.113.4,198.51.100.9 ,10.0.0.3,127.0.0.1,::ffff:10.0.0.4", "198.51.100.9"),
        ("2001:db8::1, fd00::2", "2001:db8::1"),
        *((said, None) for said in ("", ",", "10.0.0.3", "unknown", "198.51.100.9:80", "198.51.100.9, _x")),
        *((said, None) for said in ("fe80::1%eth0", "2001:db8::1%<script>", "::ffff:10.0.0.4%x")),
        *((said, None) for said in ("010.0.0.8", "0x7f.1", "1.2.3", "\u0661.1.1.1", "a" * 9_000)),
    ],
)
def test_the_reader_is_the_last_whom_no_proxy_of_ours_is(
    gated: Callable[[SignIn], Gated], forwarded: str, reader: str | None
) -> None:
    behind = gated(BEHIND_TWO)
    headers = behind.cookie() | {"X-Forwarded-For": forwarded}
    for proxy in ("10.0.0.7", "127.0.0.1", "::ffff:127.0.0.1"):
        assert status(behind.gate, "/", headers, client=proxy) == 200
        client = behind.inner.seen[-1]["client"]
        assert client == ((reader, 0) if reader else (proxy, 1234))


@pytest.mark.parametrize(
    "name",
    [
        *("X-Real-IP", "X-Client-IP", "Client-IP", "True-Client-IP", "CF-Connecting-IP", "Fastly-Client-IP"),
        *("Forwarded", "Via", "X-Forwarded", "X_Forwarded_For", "X-Forwarded-For-Original", "Remote-Addr"),
        *("X-Original-Forwarded-For", "X-Cluster-Client-IP", "X-ProxyUser-Ip", "X-Forwarded-By"),
    ],
)
def test_no_other_header_names_the_reader(gated: Callable[[SignIn], Gated], name: str) -> None:
    """Not even from a proxy that is believed: it passes on what it does not know."""
    behind = gated(BEHIND_TWO)
    for said in ("198.51.100.9", "for=198.51.100.9"):
        assert status(behind.gate, "/", behind.cookie() | {name: said}, client="10.0.0.7") == 200
        assert behind.inner.seen[-1]["client"] == ("10.0.0.7", 1234)


@pytest.mark.parametrize("settings", [OIDC, BEHIND_TWO, BEHIND_PROXY])
@pytest.mark.parametrize("client", ["192.0.2.1", "::1", "127.0.0.2"])
def test_a_forwarded_address_is_believed_of_no_other_sender(
    gated: Callable[[SignIn], Gated], settings: SignIn, client: str
) -> None:
    """Nor are tokens guessed from as many addresses as somebody invents, whatever the way in."""
    behind = gated(settings)
    headers = {"Authorization": "Bearer cwt_0", "X-Forwarded-For": "198.51.100.9", "Forwarded": "for=1.1.1.1"}
    answers = [
        status(behind.gate, "/api/v1/runs", headers | {"X-Forwarded-For": f"198.51.100.{n}"}, client=client)
        for n in range(21)
    ]
    assert answers == [401] * 20 + [429]
    if settings is not BEHIND_PROXY:
        assert (
            status(behind.gate, "/", behind.cookie() | headers | {"Authorization": ""}, client=client) == 200
        )
        assert behind.inner.seen[-1]["client"] == (client, 1234)


@pytest.mark.parametrize("name", ["X-Forwarded-User", "X-Forwarded-Groups", "X-Forwarded-For"])
def test_a_header_of_the_proxy_that_came_twice_is_refused(
    gated: Callable[[SignIn], Gated], name: str
) -> None:
    """One of the two is not the proxy's, and which one is believed must not be a matter of order."""
    behind = gated(BEHIND_PROXY)
    twice = SAYS_ADA | {"X-Forwarded-For": "198.51.100.9", name.upper(): "leads"}
    for path in ("/", "/login", "/healthz", "/api/v1/runs"):
        assert status(behind.gate, path, twice, client="10.0.0.7") == 400
    assert socket(behind.gate, twice, [], client="10.0.0.7")[0]["code"] == SIGNED_OUT
    assert behind.inner.seen == []


def test_a_forwarded_address_that_came_twice_is_refused_with_a_provider_too(
    gated: Callable[[SignIn], Gated],
) -> None:
    behind = gated(BEHIND_TWO)
    twice = behind.cookie() | {"X-Forwarded-For": "198.51.100.9", "x-forwarded-for": "203.0.113.4"}
    assert status(behind.gate, "/", twice, client="10.0.0.7") == 400
    assert status(behind.gate, "/", twice, client="192.0.2.1") == 200
    assert behind.inner.seen[-1]["client"] == ("192.0.2.1", 1234)


@pytest.mark.parametrize("client", ["10.0.0.7", "192.0.2.1"])
def test_a_token_opens_its_scope_from_every_address(client: str) -> None:
    """Also past a proxy that signs people in: a program has no face to show there."""
    now = datetime.now(UTC)
    token = Token(
        token_id="t",
        name="grafana",
        secret_hash="0" * 64,
        scopes=(TokenScope.METRICS,),
        created_at=now,
        created_by="ada",
        expires_at=None,
    )
    people = People(BEHIND_PROXY, Sessions(lasts_s=1))
    gate = LoginMiddleware(Inner(), settings=BEHIND_PROXY, people=people, token_of=lambda _secret: token)
    headers = {"Authorization": "Bearer cwt_x"}
    assert status(gate, "/metrics", headers, client=client) == 200
    for closed in ("/api/v1/runs", "/", "/_stcore/stream"):
        assert status(gate, closed, headers | SAYS_ADA, client=client) == 403


@pytest.mark.parametrize(
    ("groups", "role"),
    [
        ((), None),
        (("others",), None),
        (("engineering",), "viewer"),
        (("engineering", "leads"), "operator"),
        (("LEADS",), None),
    ],
)
def test_the_highest_role_of_any_group_counts(groups: tuple[str, ...], role: str | None) -> None:
    assert BEHIND_PROXY.roles.role_of(frozenset(groups)) == role


def test_a_proxy_of_ipv4_may_be_written_as_it_is_seen_on_an_ipv6_socket(
    gated: Callable[[SignIn], Gated],
) -> None:
    fields = OIDC.model_dump() | {"client_secret": "s", "proxies": ["::ffff:10.0.0.7", "::ffff:10.1.0.0/112"]}
    settings = SignIn.model_validate(fields)
    assert settings.proxies == ("10.0.0.7/32", "10.1.0.0/16")
    behind = gated(settings)
    headers = behind.cookie() | {"X-Forwarded-For": "198.51.100.9"}
    for proxy in ("10.0.0.7", "::ffff:10.0.0.7", "::ffff:10.1.2.3"):
        assert status(behind.gate, "/", headers, client=proxy) == 200
        assert behind.inner.seen[-1]["client"] == ("198.51.100.9", 0)


@pytest.mark.parametrize(
    "wrong",
    [
        {"base_url": "http://compilewatch.example"},
        {"base_url": "https://user:password@compilewatch.example"},
        {"base_url": "https://compilewatch.example?x=1"},
        {"issuer": "http://login.example"},
        {"issuer": None},
        {"client_id": None},
        {"scopes": ("email",)},
        {"session_hours": 0},
        {"roles": {}},
        {"roles": {"everyone": "king"}},
        {"proxy": {"addresses": ["10.0.0.0/24"]}},
        {"proxies": ["proxy.example"]},
        *({"proxies": [everybody]} for everybody in ("0.0.0.0/0", "::/0", "::ffff:0.0.0.0/96", "10.0.0.5/0")),
        {"issuer": None, "proxy": {"addresses": ["10.0.0.5", "::/0"]}},
        {"issuer": None, "proxy": {"addresses": ["::1"]}, "proxies": ["::1"]},
        {"issuer": None, "proxy": {"addresses": []}},
        {"issuer": None, "proxy": {"addresses": ["proxy.example"]}},
        {"issuer": None, "proxy": {"addresses": ["::1"], "name_header": "X User"}},
    ],
)
def test_a_login_that_could_not_hold_is_refused(wrong: dict[str, object]) -> None:
    fields = OIDC.model_dump() | {"client_secret": "s"}
    with pytest.raises(ValidationError):
        SignIn.model_validate(fields | wrong)


def test_the_secret_is_in_no_text_of_the_settings() -> None:
    settings = OIDC.model_copy(update={"client_secret": type(OIDC.client_secret)("hidden-word")})
    assert (
        "hidden-word" not in f"{settings!r} {settings} {settings.model_dump()} {settings.model_dump_json()}"
    )
    assert "hidden-word" in settings.revealed()
    assert SignIn.model_validate_json(settings.revealed()) == settings


@given(st.text() | st.text(alphabet="/\\.:@a?#%\t "))
def test_a_login_leads_back_here_and_nowhere_else(asked: str) -> None:
    path = safe_path(asked)
    assert path.startswith("/")
    assert not path.startswith("//")
    assert "\\" not in path
    assert path.isprintable()
