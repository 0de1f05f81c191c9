"""What builds are called: read and named once, and again only where a build comes or changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any

import pandas as pd

from dashboard.shaping import build_names
from db.metrics.frame_rows import row_dicts
from db.queries.facets import version_order

_COUNTS = ("trials", "failed_trials", "first_seen_at", "last_seen_at")


@dataclass(frozen=True)
class NamedBuilds:
    """Every build by its id, oldest version first: what it is called, and its parts."""

    names: Mapping[str, str]
    rows: Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class _Build:
    known: tuple[object, ...]
    order: tuple[object, ...]
    row: Mapping[str, Any]


class KnownBuilds:
    """The builds of one database as they were read last. Safe to share between threads."""

    def __init__(self, read: Callable[[Sequence[str] | None], pd.DataFrame]) -> None:
        """`read`: the frame of `db.queries.facets.builds` for some ids, or for all."""
        self._read = read
        self._lock = Lock()
        self._builds: dict[str, _Build] = {}
        self._named: tuple[tuple[tuple[object, ...], ...], NamedBuilds] | None = None

    def named(self, known: tuple[tuple[object, ...], ...]) -> NamedBuilds:
        """`known` as `db.queries.offered.Offered` tells it: id first, and what changes with a build."""
        with self._lock:
            if self._named is None or self._named[0] != known:
                self._take(known)
                self._named = known, self._name()
            return self._named[1]

    def _take(self, known: tuple[tuple[object, ...], ...]) -> None:
        stamps = {str(each[0]): each for each in known}
        self._builds = {key: build for key, build in self._builds.items() if stamps.get(key) == build.known}
        changed = [key for key in stamps if key not in self._builds]
        # One statement holds only so many ids.
        for row in row_dicts(self._read(changed if len(changed) < len(stamps) / 2 else None)):
            key = row["build_id"]
            if key in stamps and key not in self._builds:
                parts = {name: value for name, value in row.items() if name not in _COUNTS}
                self._builds[key] = _Build(stamps[key], version_order(row), parts)

    def _name(self) -> NamedBuilds:
        rows = [build.row for build in sorted(self._builds.values(), key=lambda build: build.order)]
        return NamedBuilds(build_names(rows), {row["build_id"]: row for row in rows})
