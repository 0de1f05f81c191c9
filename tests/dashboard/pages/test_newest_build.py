"""Builds that took turns in one night: pages, API, badges and commands all speak of the newest one."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from starlette.applications import Starlette

from compilewatch.dashboard.api.routes import routes
from compilewatch.dashboard.links.links import Link, Page
from compilewatch.dashboard.pages.registry import REGISTRY
from compilewatch.dashboard.parts.parts import Table, flat
from compilewatch.dashboard.read.data import read_choices
from compilewatch.dashboard.render.shell import resolved_view
from compilewatch.db import units
from compilewatch.db.metrics.groups import row_dicts
from compilewatch.runner.cli.app import app as command_line
from compilewatch.runner.cli.front import exit_code_of
from tests.builders import MS, SECOND, START, make_machine, make_trial
from tests.dashboard.asking import ask
from tests.dashboard.conftest import DATABASE, Store, opened

OLD, MIDDLE, NEW = BUILDS = ("2.11.0", "2.12.0", "2.13.0")
CASES = [(workload, strategy) for workload in ("bert-base", "mlp") for strategy in ("eager", "default")]
LATENCY = {OLD: 9 * MS, MIDDLE: 8 * MS, NEW: 7 * MS}


@pytest.fixture(scope="module")
def turns_url(store_once: Store) -> str:
    """A run per build, all at once, trial by trial: the newest trial of every case is of the oldest build.
    Earlier the old build measured one case alone, and another on an old machine.
    """
    trials = []
    for turn in range(3):
        for place, (workload, strategy) in enumerate([*CASES, ("canary-copy", "eager")]):
            for nth, build in enumerate(BUILDS[::-1]):
                number = turn * 100 + place * 10 + nth
                trials.append(
                    _trial(number, build, workload, strategy, latency_ns=LATENCY[build] + number * 1_000)
                )
    trials.append(_trial(-1000, OLD, "bert-base", "max-autotune", run_id="before"))
    trials.append(
        _trial(-2000, OLD, "lone", "default", machine=make_machine("old-box", threads=2), run_id="elsewhere")
    )
    return store_once(trials)


def _trial(number: int, build: str, workload: str, strategy: str, **fields: Any) -> Any:
    latency_ns = 12 * MS + number if strategy == "eager" else fields.pop("latency_ns", 8 * MS)
    made = {
        "run_id": f"run-{build}",
        "trial_id": f"trial-{number:05d}",
        "started_at": START + timedelta(seconds=number),
        "compile_ns": 5 * SECOND + number * MS,
        "seed": number,
        **fields,
        "latency_ns": latency_ns,
    }
    return make_trial(workload=workload, strategy=strategy, build=build, **made)


@pytest.fixture
def api(turns_url: str, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    monkeypatch.setenv(DATABASE, turns_url)
    app = Starlette(routes=routes())
    return lambda path, query=None: ask(app, path, query or {})


def _table(link: Link, column: str) -> dict[str, dict[str, Any]]:
    """The table of a page that has `column`, by its first one."""
    view = resolved_view(link, read_choices())
    content = REGISTRY[link.page].content
    assert content is not None
    tables = [part for part in flat(content(view.link).parts) if isinstance(part, Table)]
    table = next(table for table in tables if column in table.columns)
    return {row[next(iter(table.columns))]: row for row in row_dicts(table.frame)}


def _printed(capsys: pytest.CaptureFixture[str], url: str, *arguments: str) -> str:
    capsys.readouterr()
    assert exit_code_of(command_line, ["break-even", "--price-per-hour", "2", *arguments, "--db", url]) == 0
    return capsys.readouterr().out


def _badge(api: Callable[..., Any], path: str) -> tuple[str, str]:
    """What a badge shows on its right, and its title."""
    root = ET.fromstring(api(f"/badge/{path}").body)
    texts = [element.text or "" for element in root.iter("{http://www.w3.org/2000/svg}text")]
    (title,) = (element.text or "" for element in root.iter("{http://www.w3.org/2000/svg}title"))
    assert root.get("aria-label") == title
    return texts[1], title


def _builds(api: Callable[..., Any]) -> dict[str, str]:
    return {row["torch"]: row["build_id"] for row in api("/api/v1/builds").json["rows"]}


@pytest.mark.parametrize("workload", ["bert-base", "mlp"])
def test_badges_say_what_the_pages_say(api: Callable[..., Any], workload: str) -> None:
    models, page = (
        _table(Link(page=Page.WORKLOAD), "best")[workload],
        _table(Link(page=Page.BREAK_EVEN, focus=workload), "steps"),
    )
    build = f"gpu-box-3, torch {NEW}, build {_builds(api)[NEW]}, all its runs"
    speedup, title = _badge(api, f"{workload}/default.svg")
    assert speedup == units.ratio(models["speedup"])
    assert title == f"{workload} default: {speedup}, {build}"
    steps, title = _badge(api, f"{workload}/default.svg?metric=break_even")
    assert steps == units.steps(page["default"]["steps"])
    assert title == f"{workload} default break-even: {steps}, {build}"


def test_a_badge_can_be_of_one_build(api: Callable[..., Any]) -> None:
    builds = _builds(api)
    said = {torch: _badge(api, f"mlp/default.svg?build={builds[torch]}") for torch in BUILDS}
    assert len({figure for figure, _ in said.values()}) == len(BUILDS)
    assert all(f"torch {torch}, build {builds[torch]}" in title for torch, (_, title) in said.items())
    assert _badge(api, "mlp/default.svg?build=none-such")[0] == "not there"
    assert _badge(api, f"bert-base/max-autotune.svg?build={builds[NEW]}")[0] == "not there"


@pytest.mark.parametrize("case", ["bert-base/max-autotune", "lone/default"])
def test_a_case_that_the_newest_build_lacks_is_told_of_its_own(api: Callable[..., Any], case: str) -> None:
    figure, title = _badge(api, f"{case}.svg")
    assert figure.endswith("x (first look)")
    assert title.endswith(f"torch {OLD}, build {_builds(api)[OLD]}, all its runs")


def test_the_command_says_which_build_it_speaks_of(
    api: Callable[..., Any], turns_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    builds = _builds(api)
    told = [line for line in _printed(capsys, turns_url).splitlines() if line.startswith("Newest build")]
    assert sorted(told) == [
        f"Newest build of gpu-box-3: torch {NEW}, build {builds[NEW]}, all its runs",
        f"Newest build of old-box: torch {OLD}, build {builds[OLD]}, all its runs",
    ]
    text = _printed(capsys, turns_url, "--build", builds[MIDDLE])
    assert text.startswith(f"Build of gpu-box-3: torch {MIDDLE}, build {builds[MIDDLE]}, all its runs\n")


def test_runs_before_the_newest_are_shown_with_their_newest_build(store: Store) -> None:
    """Where a suite was last measured before another one, a page still shows one build, not a mixture."""
    store(
        _trial(number * 1000 + place, build, *case, suite=suite)
        for number, (build, suite) in enumerate(zip(BUILDS, ("weekly", "weekly", "nightly"), strict=True))
        for place, case in enumerate(CASES)
    )
    page = opened(Link(page=Page.BREAK_EVEN, suite="weekly"))
    assert not page.error
    app = Starlette(routes=routes())
    rows = ask(app, "/api/v1/break-even", {"suite": "weekly"}).json["rows"]
    assert {row["torch"] for row in rows} == {MIDDLE}
