"""Who is signed in, in the memory of this process: what a browser holds is a random name of a session. And
from what a provider or a proxy says of somebody to a person with a role.

A session ends when its time is over, when its owner signs out, and when the process ends.
"""

from __future__ import annotations

import hashlib
import ipaddress
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from compilewatch.dashboard.login.access import AccessError, Person, Role
from compilewatch.db.errors import one_line
from compilewatch.db.records.access import Proxy, SignIn

LONGEST_NAME = 80
_CONTACT = "Ask whoever runs this dashboard."


def person_of_claims(settings: SignIn, claims: Mapping[str, Any]) -> Person:
    """Who the checked `claims` are about. Raises AccessError for somebody without a name or a role."""
    if settings.name_claim == "email" and claims.get("email_verified") is False:
        raise AccessError("Your address is not verified at the provider.", "Verify it and sign in again.")
    name = claims.get(settings.name_claim)
    if not isinstance(name, str) or not name.strip():
        raise AccessError(f"The provider does not tell your {settings.name_claim}.", _CONTACT)
    groups = claims.get(settings.groups_claim)
    listed = groups if isinstance(groups, list) else [groups]
    return _person(settings, name, frozenset(group for group in listed if isinstance(group, str)))


def person_of_proxy(settings: SignIn, proxy: Proxy, headers: Mapping[str, str]) -> Person | None:
    """Whom the proxy says it let in, None where it says nobody. Raises AccessError for one without a role."""
    name = headers.get(proxy.name_header.lower(), "").strip()
    if not name:
        return None
    listed = headers.get(proxy.groups_header.lower(), "") if proxy.groups_header else ""
    return _person(settings, name, frozenset(part.strip() for part in listed.split(",") if part.strip()))


def comes_from(networks: Iterable[str], address: str | None) -> bool:
    """Whether `address` is in one of `networks`, those of proxies."""
    try:
        client = ipaddress.ip_address(address or "")
    except ValueError:
        return False
    if isinstance(client, ipaddress.IPv6Address) and client.ipv4_mapped is not None:
        client = client.ipv4_mapped
    return any(client in ipaddress.ip_network(network) for network in networks)


def reader_of(networks: Collection[str], forwarded: str) -> str | None:
    """Whom proxies in `networks` spoke for by their X-Forwarded-For; None where it names nobody.

    Each proxy adds whom it heard from at the end, so the last address that is no proxy's is the reader's;
    what stands before it, anybody may have written. A zone, as in fe80::1%eth0, is any text.
    """
    for part in reversed(forwarded.split(",")):
        address = part.strip()
        try:
            ipaddress.ip_address(address)
        except ValueError:
            return None
        if "%" in address:
            return None
        if not comes_from(networks, address):
            return address
    return None


def _person(settings: SignIn, name: str, groups: frozenset[str]) -> Person:
    role = settings.roles.role_of(groups)
    shown = one_line(" ".join(name.split()), LONGEST_NAME - 3)
    if role is None:
        raise AccessError(f"You signed in as {shown}, who has no role in this dashboard.", _CONTACT)
    return Person(shown, Role(role))


_MOST_SESSIONS = 10_000


class Sessions:
    """Every session by the hash of its name; safe to share between threads. Times are of `clock`, in s."""

    def __init__(self, *, lasts_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.lasts_s = lasts_s
        self._clock = clock
        self._lock = threading.Lock()
        # Whose each is, and when it ends.
        self._sessions: OrderedDict[str, tuple[Person, float]] = OrderedDict()

    def begin(self, person: Person) -> str:
        """A new session of `person`: the name its browser gets, 256 random bits."""
        name = secrets.token_urlsafe(32)
        with self._lock:
            self._sessions[_key(name)] = person, self._clock() + self.lasts_s
            while len(self._sessions) > _MOST_SESSIONS:
                self._sessions.popitem(last=False)
        return name

    def person(self, name: str | None) -> Person | None:
        """Whose session it is, None where there is none of that name any more."""
        if not name:
            return None
        key = _key(name)
        with self._lock:
            person, ends_at = self._sessions.get(key, (None, 0.0))
            if person is not None and ends_at <= self._clock():
                del self._sessions[key]
                return None
        return person

    def end(self, name: str | None) -> None:
        """Forget the session of that name, if there is one."""
        with self._lock:
            self._sessions.pop(_key(name or ""), None)


def _key(name: str) -> str:
    """Sessions are found by a hash, so that how long the search takes says nothing about any name."""
    return hashlib.sha256(name.encode()).hexdigest()
