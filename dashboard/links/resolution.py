"""A link held against what the database has: names taken for ids, and what nothing has left out."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

from compilewatch.dashboard.links.links import Link
from compilewatch.dashboard.links.values import quoted
from compilewatch.db.errors import nearest
from compilewatch.db.units import plural

Names = Sequence[tuple[str, str]]
"""What values are called, each name beside its value; one may have several, best first."""

_NOUNS = {"base": "build", "head": "build", "against": "machine"}
_MOST_OFFERED = 4


def settle(
    link: Link,
    known: Mapping[str, Sequence[str]],
    called: Mapping[str, Names] | None = None,
) -> tuple[Link, tuple[str, ...]]:
    """Take names for ids, and drop values that the database does not know.

    `known` maps a key to its values; absent keys pass. A name in `called` of several values is none of them.
    """
    problems: list[str] = []
    for field in fields(link):
        if field.name not in known:
            continue
        value, options = getattr(link, field.name), known[field.name]
        items = value if isinstance(value, tuple) else (value,) if value is not None else ()
        if all(item in options for item in items):
            continue
        names = (called or {}).get(field.name, ())
        resolved = [the_one(item, options, names) for item in items]
        values = tuple(dict.fromkeys(item for item in resolved if item is not None))
        field_value: Any = values if isinstance(value, tuple) else next(iter(values), None)
        link = replace(link, **{field.name: field_value})
        problems += [
            why_unknown(field.name, item, options, names)
            for item, one in zip(items, resolved, strict=True)
            if one is None
        ]
    return link, tuple(problems)


def the_one(item: str, options: Collection[str], names: Names) -> str | None:
    """`item` itself, or the only one of `options` that is called so."""
    if item in options:
        return item
    matches = _called(item, names) or _begin_with(item, options)
    return matches[0] if len(matches) == 1 else None


_BEGINNING, _ID = re.compile(r"[0-9a-f]{4,15}"), re.compile(r"[0-9a-f]{16}")


def _begin_with(item: str, options: Collection[str]) -> list[str]:
    """Of options that are ids those that `item` is the beginning of."""
    if not _BEGINNING.fullmatch(item):
        return []
    return [each for each in options if each.startswith(item) and _ID.fullmatch(each)]


def _called(item: str, names: Names) -> list[str]:
    return list(dict.fromkeys(value for name, value in names if name == item))


def why_unknown(key: str, item: str, options: Sequence[str], names: Names) -> str:
    """A sentence on a name that is that of nothing, or of several, with what was likely meant."""
    matches = _called(item, names)
    if not matches:
        return f"No {key} {quoted(item)} is stored here.{_hint(item, options, names)}"
    offered = [f"{quoted(value)} ({_best_name(value, names)})" for value in matches[:_MOST_OFFERED]]
    more = f" or {len(matches) - _MOST_OFFERED} more" if len(matches) > _MOST_OFFERED else ""
    return (
        f"{key}: {quoted(item)} is {plural(len(matches), _NOUNS.get(key, key))}: "
        f"take {' or '.join(offered)}{more}."
    )


def _best_name(value: str, names: Names) -> str:
    return next(name for name, each in names if each == value)


def _hint(item: str, options: Sequence[str], names: Names) -> str:
    close = nearest(item, (name for name, _ in names))
    matches = _called(close[0], names)[:_MOST_OFFERED] if close else []
    offered = [f"{quoted(value)} ({_best_name(value, names)})" for value in matches]
    offered = offered or [quoted(value) for value in nearest(item, options)]
    return f" Did you mean {' or '.join(offered)}?" if offered else ""
