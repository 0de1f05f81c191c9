"""What a link shows, in words."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from typing import Any

import pytest

from dashboard.links.links import Link, Page, keys_of
from dashboard.links.sentence import sentence

ANOTHER: dict[str, Any] = {
    "metric": "latency",
    "axis": "torch",
    "scale": "log",
    "since": date(2026, 11, 1),
    "until": date(2026, 11, 2),
    "goal": "memory",
    "steps": 77,
    "restarts": 3,
    "price": 9.0,
}


def _chosen(key: str) -> Any:
    """A value of the selector `key` that is not its default."""
    return ANOTHER.get(key, (f"a {key}",) if getattr(Link(), key) == () else f"a {key}")


@pytest.mark.parametrize(("page", "key"), [(page, key) for page in Page for key in keys_of(page)])
def test_every_selector_that_is_not_at_its_default_is_said(page: Page, key: str) -> None:
    # How many steps it is about is asked of Modes only with that goal.
    start = Link(page=page, goal="steps") if (page, key) == (Page.MODES, "steps") else Link(page=page)
    chosen = replace(start, **{key: _chosen(key)})
    assert sentence(chosen) != sentence(start)
