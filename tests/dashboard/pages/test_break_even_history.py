"""How break-even moved from build to build, where there are more builds than a page has room for."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Container, Sequence
from typing import Any

import pyarrow as pa
import pytest

from compilewatch.dashboard.links.links import Link, Page
from compilewatch.dashboard.pages.break_even import history as break_even_history
from tests.builders import make_history
from tests.dashboard.conftest import Store, opened, texts

RELEASES = ("2.10.0", "2.11.0", "2.12.0", "2.13.0")


@pytest.fixture
def stored(store: Store) -> Callable[..., None]:
    """Stores a history of mlp, a run per build, and makes it what pages show."""

    def stored(builds: Sequence[str] = RELEASES, **fields: Any) -> None:
        store(make_history(workloads=("mlp",), builds=builds, **fields))

    return stored


def compiled_ns(slow: Container[int]) -> Callable[[str, str, int], float]:
    """Compiled takes 8 ms against 12 of eager; in the runs `slow` it takes 18."""
    return lambda _workload, strategy, run: 12e6 if strategy == "eager" else 18e6 if run in slow else 8e6


def names_of_builds() -> tuple[list[str], str]:
    """The builds of the table, from top to bottom, and what the page says."""
    page = opened(Link(page=Page.BREAK_EVEN, focus="mlp"))
    (history,) = [table.value for table in page.dataframe if "build" in table.value.columns]
    return list(history["build"]), texts(page)


def test_all_builds_stand_in_the_table_newest_first(stored: Callable[..., None]) -> None:
    stored()
    builds, said = names_of_builds()
    assert builds == [f"torch {release}" for release in reversed(RELEASES)]
    assert "The newest" not in said


def test_of_many_builds_the_newest_are_shown_and_the_page_says_so(
    stored: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    stored()
    monkeypatch.setattr(break_even_history, "MOST_BUILDS", 2)
    builds, said = names_of_builds()
    assert builds == ["torch 2.13.0", "torch 2.12.0"]
    assert "The newest 2 of 4 builds." in said


def test_a_history_without_a_number_is_told_in_words_alone(stored: Callable[..., None]) -> None:
    stored(latency_ns=compiled_ns(slow=range(4)))
    page = opened(Link(page=Page.BREAK_EVEN, focus="mlp"))
    (words,) = [table.value for table in page.dataframe if "build" in table.value.columns]
    assert set(words["default"]) == {"never"}
    assert "Break-even on mlp is as it was before torch 2.13.0" in texts(page)
    assert not [chart for chart in page.get("vega_lite_chart") if "over builds" in chart.proto.alt]


def test_no_line_leads_across_builds_that_never_pay_off(stored: Callable[..., None]) -> None:
    """Compiled is faster with the first and the last release alone."""
    stored(("2.9.0", *RELEASES), latency_ns=compiled_ns(slow=(1, 2, 3)))
    page = opened(Link(page=Page.BREAK_EVEN, focus="mlp"))
    (chart,) = [each.proto for each in page.get("vega_lite_chart") if "over builds" in each.proto.alt]
    (main,) = [each for each in chart.datasets if each.name == "main"]
    rows = pa.ipc.open_stream(main.data.data).read_all().to_pylist()
    assert [row["build"] for row in rows] == ["torch 2.9.0", "torch 2.13.0"]
    assert len({row["stretch"] for row in rows}) == 2
    layers = json.loads(chart.spec)["layer"]
    connecting = [layer["encoding"] for layer in layers if layer["mark"]["type"] in ("line", "area")]
    assert [encoding["detail"]["field"] for encoding in connecting] == ["stretch", "stretch"]
    everywhere = [f"torch {release}" for release in ("2.9.0", *RELEASES)]
    assert all(encoding["x"]["scale"]["domain"] == everywhere for encoding in connecting)
    assert "No number: never with torch 2.10.0 to torch 2.12.0." in texts(page)


def test_trends_over_builds_names_those_that_have_no_number(stored: Callable[..., None]) -> None:
    stored(latency_ns=compiled_ns(slow=(1, 2)))
    page = opened(Link(page=Page.WORKLOAD, focus="mlp", metric="break_even", axis="torch"))
    assert "No number: never with torch 2.11.0, torch 2.12.0." in texts(page)
    spec = page.get("vega_lite_chart")[0].proto.spec
    assert all(f"torch {release}" in spec for release in RELEASES)


def test_trends_over_builds_tell_where_it_became_never_and_where_it_came_back(
    stored: Callable[..., None],
) -> None:
    stored(latency_ns=compiled_ns(slow=(1, 2)), trials_per_case=5)
    said = texts(opened(Link(page=Page.WORKLOAD, focus="mlp", metric="break_even", axis="torch")))
    assert "torch 2.11.0: default never, worse: Compilation no longer pays off." in said
    assert "torch 2.13.0: default from never, better: Compilation pays off now." in said


def test_a_number_that_is_not_the_newest_names_its_build(stored: Callable[..., None]) -> None:
    stored(latency_ns=compiled_ns(slow=(2, 3)))
    for axis in ("torch", "time"):
        said = texts(opened(Link(page=Page.WORKLOAD, focus="mlp", metric="break_even", axis=axis)))
        assert re.search(r"default on mlp: Break-even [\d,]+ steps with torch 2\.11\.0", said), axis


def test_where_it_never_paid_off_trends_say_so(stored: Callable[..., None]) -> None:
    stored(latency_ns=compiled_ns(slow=range(4)))
    said = texts(opened(Link(page=Page.WORKLOAD, focus="mlp", metric="break_even", axis="torch")))
    assert "No Break-even of mlp is known" in said
    assert "No number: never with torch 2.10.0 to torch 2.13.0." in said
    assert "It was not measured" not in said
