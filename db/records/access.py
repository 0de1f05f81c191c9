"""`[auth]`: how people sign in to the dashboard, and what they may do there. Checked here for both sides.

API tokens: what a program shows instead of a login. Only a hash is stored; the secret is shown once.
"""

from __future__ import annotations

import hashlib
import ipaddress
import json
import secrets
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, SecretStr, StringConstraints, model_validator

from compilewatch.db.records.fields import Closed, UtcDatetime


def _origin(value: str) -> str:
    """An https address without a path's trailing slash; http only where it cannot leave the machine."""
    try:
        parts = urlsplit(value)
        host = parts.hostname or ""
        _ = parts.port
    except ValueError:
        raise ValueError("it is not an address") from None
    local = host == "localhost" or _is_loopback(host)
    if not host or parts.username or parts.query or parts.fragment or not value.isprintable() or " " in value:
        raise ValueError("write https://HOST or https://HOST/PATH")
    if parts.scheme != "https" and not (parts.scheme == "http" and local):
        raise ValueError("write https://...; http is taken for this machine only")
    return value.rstrip("/")


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


_MAPPED_BITS = 96  # ::ffff:0:0/96 stands for all of IPv4


def _network(value: str) -> str:
    """A network, of IPv4 where it is mapped into IPv6, as senders are compared. Everybody is no proxy."""
    try:
        network = ipaddress.ip_network(value, strict=False)
    except ValueError:
        raise ValueError("write an address such as 10.0.0.5 or a network such as 10.0.0.0/24") from None
    mapped = network.network_address.ipv4_mapped if isinstance(network, ipaddress.IPv6Network) else None
    if mapped is not None and network.prefixlen >= _MAPPED_BITS:
        network = ipaddress.ip_network((mapped, network.prefixlen - _MAPPED_BITS))
    if network.prefixlen == 0:
        raise ValueError("that is every address; name those of the proxies")
    return str(network)


Origin = Annotated[str, AfterValidator(_origin)]
Network = Annotated[str, AfterValidator(_network)]
Claim = Annotated[str, StringConstraints(min_length=1, max_length=100, pattern=r"^[\w.:/-]+$")]
HeaderName = Annotated[str, StringConstraints(max_length=60, pattern=r"^[A-Za-z][A-Za-z0-9-]*$")]
Group = Annotated[str, StringConstraints(min_length=1, max_length=200)]


class Roles(Closed):
    """Which groups may do what. `everyone` is the role of whoever is in none of them."""

    viewers: tuple[Group, ...] = ()
    """groups that may read everything"""
    editors: tuple[Group, ...] = ()
    """groups that may also triage and make reports"""
    operators: tuple[Group, ...] = ()
    """groups that may also request runs"""
    everyone: Annotated[str, StringConstraints(pattern=r"^(viewer|editor|operator|nobody)$")] = "nobody"
    """the role of people in none of these groups"""

    @model_validator(mode="after")
    def _lets_somebody_in(self) -> Self:
        if self.everyone == "nobody" and not (self.viewers or self.editors or self.operators):
            raise ValueError("nobody can sign in: name groups, or set everyone")
        return self

    def role_of(self, groups: frozenset[str]) -> str | None:
        """The highest role that one of `groups` has, None for nobody."""
        for role, named in (("operator", self.operators), ("editor", self.editors), ("viewer", self.viewers)):
            if groups & set(named):
                return role
        return None if self.everyone == "nobody" else self.everyone


class Proxy(Closed):
    """`[auth.proxy]`: a proxy that signs people in and says in headers who they are."""

    addresses: Annotated[tuple[Network, ...], Field(min_length=1)]
    """addresses of the proxy; headers from others do not count"""
    name_header: HeaderName = "X-Forwarded-User"
    """header with the person's name"""
    groups_header: HeaderName | None = "X-Forwarded-Groups"
    """header with the person's groups, with commas between"""


class SignIn(Closed):
    """`[auth]`: OpenID Connect by `issuer`, or a proxy that signs people in. Absent: there is no login."""

    base_url: Origin
    """where people reach the dashboard"""
    issuer: Origin | None = None
    """the OpenID provider"""
    client_id: str | None = None
    """as the provider knows this dashboard"""
    client_secret: SecretStr | None = None
    """for the dashboard alone; better in COMPILEWATCH_AUTH__CLIENT_SECRET than in the file"""
    scopes: tuple[Claim, ...] = Field(default=("openid", "email", "profile"))
    name_claim: Claim = "email"
    """what people are called in what they write"""
    groups_claim: Claim = "groups"
    """a text or a list of texts"""
    roles: Roles
    """who may do what; without it nobody signs in"""
    session_hours: Annotated[float, Field(gt=0, le=720)] = 12
    """after which people sign in again"""
    public_badges: bool = False
    """serve badges to everybody"""
    public_reports: bool = False
    """serve reports to anyone with their address"""
    proxies: tuple[Network, ...] = ()
    """with issuer: where proxies connect from whose X-Forwarded-For is believed"""
    proxy: Proxy | None = None
    """instead of issuer"""

    @model_validator(mode="after")
    def _one_way_in(self) -> Self:
        if (self.issuer is None) == (self.proxy is None):
            raise ValueError("[auth] needs issuer or [auth.proxy], and not both")
        if self.issuer is not None and not self.client_id:
            raise ValueError("an issuer needs client_id")
        if self.proxy is not None and self.proxies:
            raise ValueError("[auth.proxy] has addresses of its own; leave proxies out")
        if "openid" not in self.scopes:
            raise ValueError("scopes must hold openid")
        return self

    @property
    def believed(self) -> tuple[str, ...]:
        """The networks of the proxies that say in X-Forwarded-For whom they speak for."""
        return self.proxies if self.proxy is None else self.proxy.addresses

    @property
    def lacks_secret(self) -> bool:
        """Whether nobody could sign in, since the provider would not know this dashboard."""
        return self.issuer is not None and not (self.client_secret and self.client_secret.get_secret_value())

    @property
    def secure(self) -> bool:
        """Whether people come by HTTPS, so that cookies may travel by it only."""
        return self.base_url.startswith("https://")

    def revealed(self) -> str:
        """As JSON with the secret in it, for the environment of the dashboard's process and nothing else."""
        secret = self.client_secret
        shown = None if secret is None else secret.get_secret_value()
        return json.dumps(self.model_dump(mode="json") | {"client_secret": shown})


SECRET_BYTES = 32
PREFIX = "cwt_"
"""So that a scanner of leaked secrets can know one by its look."""

TokenName = Annotated[
    str, StringConstraints(min_length=1, max_length=100, pattern=r"^[A-Za-z0-9][\w.+@:-]*$")
]


class Scope(StrEnum):
    """What a token opens; `requests`, `annotations` and `jobs` write, each nothing but what it is called."""

    API = "api"
    METRICS = "metrics"
    REPORTS = "reports"
    REQUESTS = "requests"
    ANNOTATIONS = "annotations"
    JOBS = "jobs"


class Token(Closed):
    """A token as it is stored. `secret_hash` finds it, and gives nothing away of the secret."""

    token_id: str
    name: TokenName
    secret_hash: str
    scopes: Annotated[tuple[Scope, ...], Field(min_length=1)]
    created_at: UtcDatetime
    created_by: str
    expires_at: UtcDatetime | None = None
    revoked_at: UtcDatetime | None = None
    revoked_by: str | None = None

    def has_ended(self, now: datetime) -> bool:
        return self.revoked_at is not None or (self.expires_at is not None and self.expires_at <= now)

    def opens(self, scope: Scope, now: datetime) -> bool:
        """Whether it is let in to what needs `scope`."""
        return scope in self.scopes and not self.has_ended(now)


def new_secret() -> str:
    """What the program that gets the token sends: 256 random bits, in an alphabet that headers take."""
    return PREFIX + secrets.token_urlsafe(SECRET_BYTES)


def secret_hash(secret: str) -> str:
    """What is stored of a secret. It is random and long, so that no slow hash is needed to protect it."""
    return hashlib.sha256(secret.encode()).hexdigest()


def new_token_id() -> str:
    """Eight random hexadecimal digits, by which people name a token; no secret."""
    return secrets.token_hex(4)
