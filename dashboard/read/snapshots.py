"""The data version that pages are drawn of, and what was prepared for it: kept until the next is taken up."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ParamSpec, TypeVar, cast

import streamlit as st

from dashboard.read.database import database_url, read_version
from dashboard.read.refresh_throttle import RefreshThrottle

P = ParamSpec("P")
T = TypeVar("T")

REFRESH_THROTTLE = RefreshThrottle()


def drawn_version() -> int:
    """The data version that pages are drawn of now: the newest, as far as `dashboard.read.refresh_throttle`
    keeps up with it.

    Raises DatabaseError when the database cannot be read.
    """
    return REFRESH_THROTTLE.take(database_url(), read_version())


# By what is asked for: these say all that is in them, and Streamlit would walk through every field instead.
_BY_WORDS: dict[str | type, Callable[[Any], Any]] = {
    "dashboard.links.links.Link": repr,
    "dashboard.read.snapshots.Snapshot": repr,
    "db.queries.filters.Filters": repr,
}


@dataclass(frozen=True)
class Snapshot:
    """The database at one data version; part of every cache key."""

    url: str
    version: int

    @classmethod
    def now(cls) -> Snapshot:
        """What a page that is drawn now is drawn of. Raises DatabaseError."""
        return cls(database_url(), drawn_version())


def cached(prepare: Callable[P, T]) -> Callable[P, T]:
    """Cache what `prepare` makes of its arguments, which hold a `Snapshot`; shared between sessions.

    Kept until another version of the data is drawn.
    """
    cached = st.cache_resource(max_entries=128, show_spinner=False, hash_funcs=_BY_WORDS)(prepare)
    REFRESH_THROTTLE.at_another(cached.clear)
    return cast(Callable[P, T], cached)
