"""A link held against what the database has: names taken for ids, and what nothing has left out."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

from dashboard.links import Link
from dashboard.selectors import quoted


def settle(
    link: Link,
    known: Mapping[str, Sequence[str]],
    called: Mapping[str, Sequence[tuple[str, str]]] | None = None,
) -> tuple[Link, tuple[str, ...]]:
    """Take names for ids, and drop values that the database does not know.

    `known` maps a key to its values; absent keys pass. `called` has names beside the values that they stand
    for; a name of several values is none of them.
    """
    changes: dict[str, Any] = {}
    problems: list[str] = []
    for field in fields(link):
        if field.name not in known:
            continue
        value, options = getattr(link, field.name), known[field.name]
        asked = value if isinstance(value, tuple) else (value,) if value is not None else ()
        if all(item in options for item in asked):
            continue
        names = (called or {}).get(field.name, ())
        meant = [_meant(item, options, names) for item in asked]
        kept = tuple(dict.fromkeys(item for item in meant if item is not None))
        changes[field.name] = kept if isinstance(value, tuple) else next(iter(kept), None)
        problems += [
            f"No {field.name} {quoted(item)} is stored here; it was left out.{_hint(item, options, names)}"
            for item, found in zip(asked, meant, strict=True)
            if found is None
        ]
    return replace(link, **changes), tuple(problems)


def _meant(item: str, options: Sequence[str], names: Sequence[tuple[str, str]]) -> str | None:
    """`item` itself, or the only one of `options` that is called so."""
    if item in options:
        return item
    found = {value for name, value in names if name == item}
    return found.pop() if len(found) == 1 else None


def _hint(item: str, options: Sequence[str], names: Sequence[tuple[str, str]]) -> str:
    close = difflib.get_close_matches(item, [name for name, _ in names], n=1)
    found = dict.fromkeys(value for name, value in names if name in close)
    offered = [f"{quoted(value)} ({close[0]})" for value in found]
    offered = offered or [quoted(value) for value in difflib.get_close_matches(item, options, n=1)]
    return f" Did you mean {' or '.join(offered)}?" if offered else ""
