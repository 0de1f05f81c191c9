"""Who drives a page, and what they may do. Every write asks here, in the write itself.

Without login the dashboard serves this machine only, and whoever reaches it is its operator.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum

import streamlit as st

from compilewatch.db.errors import CompilewatchError


class AccessError(CompilewatchError):
    """Somebody may not do what they asked for, or is no longer signed in."""


class Role(StrEnum):
    """What a person may do; each may also do what those before it may."""

    VIEWER = "viewer"
    EDITOR = "editor"
    OPERATOR = "operator"

    def includes(self, other: Role) -> bool:
        """Whether whoever has this role may do what needs `other`."""
        order = tuple(Role)
        return order.index(self) >= order.index(other)


@dataclass(frozen=True)
class Person:
    """Somebody who is let in. `name` is what what they write is signed with; None without login."""

    name: str | None
    role: Role

    def may(self, role: Role) -> bool:
        """Whether they may do what needs `role`."""
        return self.role.includes(role)


# From the headers of a request that was let in to who sent it; None where that has ended since.
Identify = Callable[[Mapping[str, str]], Person | None]

NO_LOGIN = Person(None, Role.OPERATOR)


class _Door:
    """How people are told apart; None while there is no login."""

    identify: Identify | None = None
    leave_at: str | None = None


def identify_people_by(identify: Identify | None, *, leave_at: str | None = None) -> None:
    """From now on people are who `identify` says, and sign out at `leave_at`; with None there is no login."""
    _Door.identify, _Door.leave_at = identify, leave_at


def sign_out_path() -> str | None:
    """Where one signs out; None where there is nothing to sign out of here."""
    return _Door.leave_at


def person_here() -> Person:
    """Who drives the page that is being drawn, found anew at every call.

    Raises AccessError when their session has ended.
    """
    if _Door.identify is None:
        return NO_LOGIN
    person = _Door.identify(st.context.headers)
    if person is None:
        raise AccessError("Your session has ended.", "Load the page again to sign in.")
    return person


def require(role: Role) -> Person:
    """Who drives the page, if they may do what needs `role`. Raises AccessError otherwise."""
    person = person_here()
    if not person.may(role):
        raise AccessError(
            f"This needs the role {role.value}, and you are signed in as {person.role.value}.",
            "Ask whoever gives out the roles of this dashboard.",
        )
    return person
