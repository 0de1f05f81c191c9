"""What a link shows, in words."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from typing import Any

import pytest

from dashboard.links.links import Link, Page, keys_of, read_url
from dashboard.links.sentence import sentence


def test_the_sentence_says_what_is_shown() -> None:
    link = Link(
        page=Page.TRENDS,
        metric="latency",
        axis="torch",
        workload=("bert-base", "mlp"),
        strategy=("default",),
        machine="abc",
        since=date(2026, 11, 1),
    )
    said = sentence(link, {"machine": {"abc": "gpu-box-3 (NVIDIA H200)"}})
    assert said == (
        "Latency over torch versions of bert-base and mlp with default on gpu-box-3 (NVIDIA H200) "
        "since 2026-11-01."
    )


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


@pytest.mark.parametrize(
    ("link", "said"),
    [
        ("trial?status=failed&source=imported", "with status failed from source imported"),
        ("trial?run=r1", "of run r1"),
        ("regressions?state=new&regression=a&regression=b", "in state new looking at 2 chosen regressions"),
        ("cold-start?cache=warm", "with cache warm"),
        ("break-even?price=9", "at 9 per GPU-hour"),
        ("upgrade?focus=mlp&focus_strategy=default", "looking at mlp with default"),
        ("reports?report=0123", "Report 0123"),
    ],
)
def test_what_is_chosen_is_said_in_words(link: str, said: str) -> None:
    asked, problems = read_url(link)
    assert problems == ()
    assert sentence(asked).endswith(f"{said}.")
