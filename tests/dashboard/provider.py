"""A small OpenID provider on this machine: discovery, authorization with PKCE, tokens, keys.

It lets everybody in as `person` at once, as a provider does with somebody who is signed in there. What it
says can be bent in every way that a dashboard must not believe.
"""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from joserfc import jwt
from joserfc.jwk import RSAKey

from tests.loopback import Quiet, on_loopback

CLIENT_ID, CLIENT_SECRET = "compilewatch", "the-secret-of-the-client"

Bend = Callable[[dict[str, Any]], dict[str, Any]]


@dataclass
class _Grant:
    redirect_uri: str
    challenge: str
    nonce: str | None


@dataclass
class FakeProvider:
    """What the provider knows and how it behaves; tests change it between logins."""

    issuer: str
    person: dict[str, Any] = field(
        default_factory=lambda: {"sub": "1", "email": "ada@example.com", "groups": ["performance"]}
    )
    bend: Bend = lambda claims: claims
    key: RSAKey = field(default_factory=lambda: RSAKey.generate_key(2048, {"kid": "first"}))
    published: RSAKey | None = None
    algorithm: str = "RS256"
    refuses: bool = False
    seen: list[str] = field(default_factory=list)
    grants: dict[str, _Grant] = field(default_factory=dict)

    def discovery(self) -> dict[str, Any]:
        return {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "jwks_uri": f"{self.issuer}/keys",
        }

    def authorized(self, query: dict[str, str]) -> str:
        """Where the browser is sent back to."""
        assert query["client_id"] == CLIENT_ID
        assert query["response_type"] == "code"
        assert query["code_challenge_method"] == "S256"
        back = {"state": query["state"]}
        if self.refuses:
            return f"{query['redirect_uri']}?{urlencode(back | {'error': 'access_denied'})}"
        code = secrets.token_urlsafe(8)
        self.grants[code] = _Grant(query["redirect_uri"], query["code_challenge"], query.get("nonce"))
        return f"{query['redirect_uri']}?{urlencode(back | {'code': code})}"

    def token(self, form: dict[str, str], authorization: str) -> dict[str, Any] | None:
        """The tokens for a code; None where the client is not the one it was given to."""
        grant = self.grants.pop(form.get("code", ""), None)
        given = base64.b64encode(f"{CLIENT_ID}:{CLIENT_SECRET}".encode()).decode()
        challenge = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
        if (
            grant is None
            or authorization != f"Basic {given}"
            or form.get("redirect_uri") != grant.redirect_uri
            or base64.urlsafe_b64encode(challenge).decode().rstrip("=") != grant.challenge
        ):
            return None
        return {"access_token": "unused", "token_type": "Bearer", "id_token": self._id_token(grant)}

    def _id_token(self, grant: _Grant) -> str:
        now = int(time.time())
        claims = {
            "iss": self.issuer,
            "aud": CLIENT_ID,
            "iat": now,
            "exp": now + 300,
            "nonce": grant.nonce,
            **self.person,
        }
        return jwt.encode({"alg": self.algorithm, "kid": "first"}, self.bend(claims), self.key)


@contextmanager
def fake_provider() -> Iterator[FakeProvider]:
    class Handler(_Handler):
        pass

    with on_loopback(Handler) as address:
        Handler.provider = FakeProvider(address)
        yield Handler.provider


class _Handler(Quiet):
    provider: FakeProvider

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        self.provider.seen.append(parts.path)
        if parts.path == "/.well-known/openid-configuration":
            self._json(self.provider.discovery())
        elif parts.path == "/keys":
            shown = self.provider.published or self.provider.key
            self._json({"keys": [shown.as_dict(private=False)]})
        elif parts.path == "/authorize":
            self.send_response(302)
            self.send_header("Location", self.provider.authorized(_flat(parts.query)))
            self.end_headers()
        else:
            self.send_error(404)

    def do_POST(self) -> None:
        form = _flat(self.rfile.read(int(self.headers["Content-Length"])).decode())
        tokens = self.provider.token(form, self.headers.get("Authorization", ""))
        if tokens is None:
            self._json({"error": "invalid_grant"}, 400)
        else:
            self._json(tokens)

    def _json(self, content: dict[str, Any], status: int = 200) -> None:
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def _flat(query: str) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(query).items()}
