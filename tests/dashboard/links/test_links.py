"""Links: every selector survives the URL, and nothing in a URL can break a page."""

from __future__ import annotations

from dataclasses import fields, replace
from datetime import date
from typing import get_type_hints
from urllib.parse import parse_qs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compilewatch.dashboard.links import links
from compilewatch.dashboard.links.links import SELECTORS, Link, Page
from compilewatch.dashboard.links.resolution import settle
from compilewatch.dashboard.links.values import Day, Decimal, One, Several, Text, Whole, Word

NAMES = st.text(min_size=1, max_size=40).filter(
    lambda text: not any("\ud800" <= char <= "\udfff" or char == "\0" for char in text)
)


READERS = {
    key: next(each for each in annotation.__metadata__ if isinstance(each, One | Several))
    for key, annotation in get_type_hints(Link, include_extras=True).items()
    if key in SELECTORS
}


def _values(key: str) -> st.SearchStrategy:
    several, kind = isinstance(READERS[key], Several), READERS[key].kind
    match kind:
        case Text():
            names = NAMES | st.just("all")
            return st.lists(names, unique=True, max_size=4).map(tuple) if several else st.none() | names
        case Word():
            words = st.sampled_from(kind.options)
            return st.lists(words, unique=True).map(tuple) if several else words
        case Whole():
            return st.integers(kind.low, kind.high)
        case Decimal():
            return st.floats(kind.low, kind.high, allow_nan=False)
        case Day():
            return st.none() | st.dates()


@st.composite
def any_link(draw: st.DrawFn) -> Link:
    page = draw(st.sampled_from(Page))
    link = replace(Link(page=page), **{key: draw(_values(key)) for key in links.keys_of(page)})
    if link.since and link.until and link.since > link.until:
        link = replace(link, since=link.until, until=link.since)
    return link


@given(any_link())
def test_every_selector_survives_the_url(link: Link) -> None:
    assert links.read_url(links.href(link)) == (link, ())


@given(any_link())
def test_a_permalink_writes_every_selector_and_the_data_version(link: Link) -> None:
    url = links.permalink(link, 41, "https://bench.example/team/")
    assert url.startswith(f"https://bench.example/team/{link.page.value}")
    assert set(parse_qs(url.partition("?")[2], keep_blank_values=True)) == {*links.keys_of(link.page), "data"}
    assert links.read_url(url) == (replace(link, data=41), ())


@given(
    st.sampled_from(Page),
    st.dictionaries(
        st.sampled_from([*SELECTORS, "data", "junk"]) | NAMES, st.lists(st.text(), min_size=1, max_size=3)
    ),
)
def test_any_query_gives_a_link_whose_own_query_is_accepted(page: Page, query: dict[str, list[str]]) -> None:
    link, problems = links.read(page, query)
    assert all(problem.endswith((".", "?")) and "\n" not in problem for problem in problems)
    assert links.read_url(links.href(link)) == (link, ())


@given(any_link(), st.lists(NAMES, max_size=3), st.lists(NAMES, max_size=3))
def test_settling_keeps_only_what_is_known_and_is_stable(
    link: Link, workloads: list[str], runs: list[str]
) -> None:
    known = {"workload": workloads, "run": runs}
    settled, problems = settle(link, known)
    assert set(settled.workload) <= set(workloads)
    assert settled.run is None or settled.run in runs
    assert settle(settled, known) == (settled, ())
    assert bool(problems) == (settled != link)


def test_only_what_differs_from_the_default_is_in_the_address_bar() -> None:
    assert links.href(Link(page=Page.WORKLOAD)) == "workload"
    assert links.href(Link(page=Page.WORKLOAD, metric="speedup")) == "workload?metric=speedup"


@pytest.mark.parametrize(
    ("page", "query", "kept", "sentence"),
    [
        (Page.WORKLOAD, "metric=speed", {"metric": "latency"}, "metric: “speed” is none of latency, speedup"),
        (
            Page.BREAK_EVEN,
            "steps=0",
            {"steps": 1},
            "steps: it must lie between 1 and 1,000,000,000; using 1.",
        ),
        (Page.BREAK_EVEN, "steps=many", {"steps": 10_000}, "“many” is not a whole number"),
        (Page.BREAK_EVEN, "price=nan", {"price": 2.0}, "price: “nan” is not a number; using 2."),
        (Page.BREAK_EVEN, "price=-inf", {"price": 0.0}, "price: it must lie between"),
        (Page.WORKLOAD, "since=yesterday", {"since": None}, "“yesterday” is not a day like 2026-11-20"),
        (
            Page.WORKLOAD,
            "since=2026-02-03&until=2026-02-01",
            {"since": date(2026, 2, 3), "until": None},
            "lies before since",
        ),
        (Page.MODES, "metric=latency", {}, "metric selects nothing on the page Modes"),
        (Page.MODES, "strategi=default", {}, "Did you mean strategy?"),
        (
            Page.OVERVIEW,
            "task=inference&task=sleep",
            {"task": ("inference",)},
            "“sleep” is none of inference",
        ),
        (Page.OVERVIEW, "machine=a&machine=b", {"machine": "a"}, "only one value is possible"),
        (Page.OVERVIEW, "machine=all&machine=b", {"machine": None}, "machine: only one value is possible"),
        (
            Page.WORKLOAD,
            "metric=latency&metric=break_even",
            {"metric": "latency"},
            "metric: only one value is possible; using “latency”.",
        ),
        (
            Page.WORKLOAD,
            "metric=speed&metric=latency",
            {"metric": "latency"},
            "metric: only one value is possible, and “speed” is none of latency, speedup",
        ),
        (
            Page.BREAK_EVEN,
            "steps=100&steps=200",
            {"steps": 100},
            "steps: only one value is possible; using “100”.",
        ),
        (Page.BREAK_EVEN, "price=1&price=3", {"price": 1.0}, "price: only one value is possible; using “1”."),
        (
            Page.WORKLOAD,
            "since=2026-11-01&since=2026-11-20",
            {"since": date(2026, 11, 1)},
            "since: only one value is possible; using “2026-11-01”.",
        ),
        (Page.WORKLOAD, "data=abc", {"data": None}, "data: “abc” is no data version and was ignored."),
        (Page.WORKLOAD, "data=3&data=4", {"data": 3}, "data: only one value is possible; using “3”."),
    ],
)
def test_what_cannot_be_applied_is_a_sentence_and_the_nearest_view(
    page: Page, query: str, kept: dict[str, object], sentence: str
) -> None:
    link, problems = links.read(page, parse_qs(query))
    assert sentence in " ".join(problems)
    assert {key: getattr(link, key) for key in kept} == kept


@pytest.mark.parametrize("key", ["metric", "steps", "price", "since", "machine", "data"])
def test_a_value_said_twice_is_one_value(key: str) -> None:
    page = Page.BREAK_EVEN if key in {"steps", "price"} else Page.WORKLOAD
    value = {"metric": "latency", "steps": "7", "price": "1.5", "since": "2026-11-01"}.get(key, "3")
    assert links.read(page, {key: [value, value]}) == links.read(page, {key: [value]})
    assert links.read(page, {key: [value, value]})[1] == ()


def test_unknown_path_shows_the_overview_and_a_hint() -> None:
    link, problems = links.read_url("/trendz?machine=abc")
    assert link == Link(machine="abc")
    assert problems == ("There is no page “trendz”; showing Today. Did you mean Models?",)


def test_a_page_in_capitals_is_that_page() -> None:
    assert links.read_url("/Trends?metric=latency") == (Link(page=Page.WORKLOAD, metric="latency"), ())


def test_unknown_values_suggest_the_nearest_known_one() -> None:
    settled, problems = settle(Link(workload=("bert-bse", "mlp")), {"workload": ["bert-base", "mlp"]})
    assert settled.workload == ("mlp",)
    assert problems == ("No workload “bert-bse” is stored here. Did you mean “bert-base”?",)


NAMED = {"machine": [("cpu-box", "85bb"), ("cpu-box (a CPU)", "85bb"), ("twin", "1a"), ("twin", "2b")]}


@pytest.mark.parametrize(
    ("asked", "settled", "said"),
    [
        ("85bb", "85bb", ()),
        ("cpu-box", "85bb", ()),
        ("cpu-box (a CPU)", "85bb", ()),
        ("cpu-bx", None, " Did you mean “85bb” (cpu-box)?"),
        ("elsewhere", None, ""),
    ],
)
def test_a_name_that_only_one_has_is_as_good_as_its_id(asked: str, settled: str | None, said: object) -> None:
    link, problems = settle(Link(machine=asked), {"machine": ["85bb", "1a", "2b"]}, NAMED)
    assert link == Link(machine=settled)
    assert problems == (() if said == () else (f"No machine “{asked}” is stored here.{said}",))


def test_a_name_that_several_have_is_never_denied() -> None:
    link, problems = settle(Link(machine="twin"), {"machine": ["85bb", "1a", "2b"]}, NAMED)
    assert link == Link()
    assert problems == ("machine: “twin” is 2 machines: take “1a” (twin) or “2b” (twin).",)


def test_long_and_invisible_text_is_shortened_in_sentences() -> None:
    _, problems = links.read(Page.OVERVIEW, {"x" * 500 + "\u202e\x00": ["1"]})
    assert len(problems[0]) < 140
    assert "\u202e" not in problems[0]


def test_moving_to_another_page_keeps_global_selectors_only() -> None:
    link = Link(page=Page.WORKLOAD, machine="m", task=("training",), metric="latency")
    assert links.move(link, Page.MODES, goal="memory") == Link(
        page=Page.MODES, machine="m", task=("training",), goal="memory"
    )
    assert links.move(link, Page.GUIDE) == Link(page=Page.GUIDE)


def test_every_field_of_a_link_is_a_selector() -> None:
    assert {field.name for field in fields(Link)} == {"page", "data", *SELECTORS}
