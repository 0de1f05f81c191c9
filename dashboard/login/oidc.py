"""OpenID Connect, the authorization code flow with PKCE: where to send a browser, who came back.

The protocol is Authlib's and joserfc's; here is what they are asked and what of the answer is believed.
"""

from __future__ import annotations

import json
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import requests
from authlib.common.errors import AuthlibBaseError
from authlib.integrations.requests_client import OAuth2Session
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet

from compilewatch.dashboard.login.access import AccessError
from compilewatch.db.records.access import SignIn

CALLBACK = "/login/callback"
_ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"]
_LEEWAY_S = 60
_ATTEMPT_LASTS_S = 600.0
# More than one address may begin while an attempt lasts (`dashboard.login.routes`).
_MOST_ATTEMPTS = 10_000
_TIMEOUT_S = 10
_LONGEST_ANSWER_BYTES = 1_000_000
_AGAIN = "Try to sign in again; if it stays so, ask whoever runs this dashboard."


@dataclass(frozen=True)
class _Attempt:
    """A login that was begun in one browser; `secret` is in its cookie and nowhere else."""

    secret: str
    nonce: str
    verifier: str
    back_to: str
    ends_at: float


class Provider:
    """The OpenID provider of the configuration. Its metadata and keys are fetched when they are needed."""

    def __init__(self, settings: SignIn, *, clock: Callable[[], float] = time.time) -> None:
        self._settings = settings
        self._clock = clock
        self._lock = threading.Lock()
        self._attempts: OrderedDict[str, _Attempt] = OrderedDict()
        self._metadata: dict[str, Any] | None = None
        self._keys: KeySet | None = None

    def begin(self, back_to: str) -> tuple[str, str]:
        """Begin a login that leads to the path `back_to`: where the browser goes now, and what it must bring
        back in a cookie. Raises AccessError where the provider is away.
        """
        state, secret, nonce, verifier = (secrets.token_urlsafe(32) for _ in range(4))
        address, _ = self._client().create_authorization_url(
            self._endpoint("authorization_endpoint"), state=state, nonce=nonce, code_verifier=verifier
        )
        attempt = _Attempt(secret, nonce, verifier, back_to, self._clock() + _ATTEMPT_LASTS_S)
        with self._lock:
            self._attempts[state] = attempt
            while len(self._attempts) > _MOST_ATTEMPTS:
                self._attempts.popitem(last=False)
        return str(address), secret

    def finish(self, query: Mapping[str, str], secret: str | None) -> tuple[dict[str, Any], str]:
        """What the provider says of who came back with `query` and the cookie's `secret`, after every check,
        and the path that they asked for. Each attempt finishes once.

        Raises AccessError where the answer is not one to a login of this browser, or the provider said no.
        """
        with self._lock:
            attempt = self._attempts.pop(query.get("state", ""), None)
        if attempt is None or attempt.ends_at <= self._clock():
            raise AccessError("This login was not begun here, or took too long.", _AGAIN)
        if secret is None or not secrets.compare_digest(secret.encode(), attempt.secret.encode()):
            raise AccessError("This login was begun in another browser.", _AGAIN)
        if "code" not in query:
            raise AccessError("The provider did not let you sign in.", _AGAIN)
        token = self._exchange(query["code"], attempt.verifier)
        return self._checked(token, attempt.nonce), attempt.back_to

    def _client(self) -> OAuth2Session:
        secret = self._settings.client_secret
        client = OAuth2Session(
            self._settings.client_id,
            None if secret is None else secret.get_secret_value(),
            scope=" ".join(self._settings.scopes),
            redirect_uri=self._settings.base_url + CALLBACK,
            code_challenge_method="S256",
        )
        client.trust_env = False
        return client

    def _exchange(self, code: str, verifier: str) -> str:
        try:
            answer = self._client().fetch_token(
                self._endpoint("token_endpoint"), code=code, code_verifier=verifier, timeout=_TIMEOUT_S
            )
        except (AuthlibBaseError, requests.RequestException, ValueError) as error:
            # What the provider said may hold the code; only the kind of trouble is told.
            raise AccessError(f"The provider refused the login ({type(error).__name__}).", _AGAIN) from None
        token = answer.get("id_token")
        if not isinstance(token, str):
            raise AccessError("The provider's answer does not say who you are.", _AGAIN)
        return token

    def _checked(self, token: str, nonce: str) -> dict[str, Any]:
        """The claims of an ID token: signed by the provider, for us, for this attempt, still valid."""
        try:
            claims = self._decoded(token)
            registry = jwt.JWTClaimsRegistry(
                now=int(self._clock()),
                leeway=_LEEWAY_S,
                iss={"essential": True, "value": str(self._discovered()["issuer"])},
                aud={"essential": True, "value": self._settings.client_id or ""},
                exp={"essential": True},
                iat={"essential": True},
                sub={"essential": True},
                nonce={"essential": True, "value": nonce},
            )
            registry.validate(claims)
        except (JoseError, ValueError, TypeError) as error:
            raise AccessError(
                f"What the provider says of you cannot be trusted ({type(error).__name__}).", _AGAIN
            ) from None
        audience = claims["aud"]
        if isinstance(audience, list) and len(audience) > 1 and claims.get("azp") != self._settings.client_id:
            raise AccessError("What the provider says of you is meant for another program.", _AGAIN)
        return claims

    def _decoded(self, token: str) -> dict[str, Any]:
        """Once more with fresh keys where the known ones do not fit: providers change theirs."""
        if self._keys is not None:
            try:
                return dict(jwt.decode(token, self._keys, algorithms=_ALGORITHMS).claims)
            except (JoseError, ValueError):
                self._keys = None
        self._keys = KeySet.import_key_set(self._fetched(self._endpoint("jwks_uri")))
        return dict(jwt.decode(token, self._keys, algorithms=_ALGORITHMS).claims)

    def _endpoint(self, name: str) -> str:
        address = self._discovered().get(name)
        if not isinstance(address, str):
            raise AccessError(f"The OpenID provider names no {name}.", "Correct issuer in [auth].")
        return address

    def _discovered(self) -> dict[str, Any]:
        if self._metadata is None:
            issuer = self._settings.issuer
            document = self._fetched(f"{issuer}/.well-known/openid-configuration")
            if str(document.get("issuer", "")).rstrip("/") != issuer:
                raise AccessError("The OpenID provider has another name.", "Correct issuer in [auth].")
            self._metadata = document
        return self._metadata

    def _fetched(self, address: str) -> Any:
        try:
            with requests.Session() as session:
                session.trust_env = False
                answer = session.get(address, timeout=_TIMEOUT_S, allow_redirects=False)
                answer.raise_for_status()
            document = json.loads(answer.content[:_LONGEST_ANSWER_BYTES])
        except (requests.RequestException, ValueError) as error:
            raise AccessError(
                f"The OpenID provider does not answer as one ({type(error).__name__}).",
                "Try again; if it stays so, check issuer in [auth].",
            ) from None
        if not isinstance(document, dict):
            raise AccessError("The OpenID provider does not answer as one.", "Check issuer in [auth].")
        return document
