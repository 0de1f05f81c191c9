"""Names of records are data of a chart: no expression, filter, link or format is made of one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from compilewatch.dashboard.links.links import Link, Page
from compilewatch.db.engine.session import open_database
from compilewatch.db.judge.compare.sides import Selection
from compilewatch.db.queries.trials import trials_frame
from compilewatch.db.records.trial import Trial
from compilewatch.db.service.recording import record_comparison
from compilewatch.db.verdicts.gateway import compare
from tests.builders import MS, START, make_build, make_history
from tests.dashboard.conftest import DATABASE, Store, opened

NAME = "x' || alert(7) || datum['y"
CHARTED = (
    Page.OVERVIEW,
    Page.WORKLOAD,
    Page.UPGRADE,
    Page.MODES,
    Page.BREAK_EVEN,
    Page.COLD_START,
    Page.TRIAL,
)
# Where Vega-Lite takes an expression, an address, a format, or looks a word up.
EVALUATED = frozenset(
    {
        *("filter", "calculate", "expr", "labelExpr", "test", "signal", "update", "href", "url", "format"),
        *("formatType", "as", "param", "transform", "params", "usermeta", "config"),
    }
)


def renamed(trial: Trial) -> Trial:
    """Each name that somebody chooses is one that breaks out of a quoted text."""
    return trial.model_copy(
        update={
            "suite": NAME,
            "label": NAME,
            "machine": trial.machine.model_copy(update={"name": NAME, "device_name": NAME}),
            "workload": trial.workload.model_copy(update={"name": f"{trial.workload.name}{NAME}"}),
            "strategy": trial.strategy
            if trial.strategy.name == "eager"
            else trial.strategy.model_copy(update={"name": f"{trial.strategy.name}{NAME}"}),
        }
    )


@pytest.fixture(scope="module")
def url(store_once: Store) -> str:
    trials = make_history(
        workloads=("mlp", "bert-base"),
        strategies=("eager", "default", "max-autotune"),
        builds=tuple(make_build(release, label=NAME) for release in ("2.11.0", "2.12.0", "2.13.0")),
        latency_ns=lambda _w, strategy, run: MS * (2.0 if strategy == "eager" else 1.0 + 0.3 * run),
    )
    url = store_once(map(renamed, trials))
    with open_database(url) as database:
        frame = trials_frame(database)
        runs = list(dict.fromkeys(frame["run_id"]))
        base, head = (Selection(name=NAME, run_ids=(run,)) for run in (runs[0], runs[-1]))
        record_comparison(database, compare(database, base, head), at=START)
    return url


@pytest.fixture(autouse=True)
def _reads(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(DATABASE, url)


def evaluated(spec: Any, below: bool = False) -> Iterator[str]:
    """Every text at or below a key of `EVALUATED`."""
    if isinstance(spec, dict):
        for key, value in spec.items():
            yield from evaluated(value, below or key in EVALUATED)
    elif isinstance(spec, list):
        for value in spec:
            yield from evaluated(value, below)
    elif below and isinstance(spec, str):
        yield spec


def all_charts(url: str, page: Page) -> list[Any]:
    with open_database(url, read_only=True) as database:
        frame = trials_frame(database)
    compiled = frame[frame["strategy"] != "eager"].iloc[-1]
    one = Link(page=page, focus=compiled["workload"], focus_strategy=compiled["strategy"])
    links = [Link(page=page), one]
    if page is Page.TRIAL:
        links = [Link(page=page, trial=str(compiled["trial_id"]))]
    found = []
    for link in links:
        test = opened(link)
        found += test.get("vega_lite_chart")
    return found


@pytest.mark.parametrize("page", CHARTED)
def test_no_name_is_evaluated_in_a_chart(page: Page, url: str) -> None:
    charts = all_charts(url, page)
    assert charts
    for chart in charts:
        texts = list(evaluated(json.loads(chart.proto.spec)))
        assert [text for text in texts if "alert(7)" in text] == []


def test_the_names_are_drawn(url: str) -> None:
    drawn = [chart.proto for chart in all_charts(url, Page.MODES)]
    assert any(
        b"alert(7)" in data.data.data or "alert(7)" in one.spec for one in drawn for data in one.datasets
    )


def test_an_evaluated_name_would_be_found() -> None:
    spec = {"layer": [{"transform": [{"filter": f"datum.name == '{NAME}'"}], "title": NAME}]}
    assert list(evaluated(spec)) == [f"datum.name == '{NAME}'"]
