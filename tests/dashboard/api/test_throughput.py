"""Throughput is what a step works off over its latency, in every door alike: ten cases by hand."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette

from compilewatch.dashboard.api.routes import routes
from compilewatch.dashboard.links.links import Link, Page
from compilewatch.dashboard.pages.upgrade import content as upgrade
from compilewatch.dashboard.pages.workload import history as trends
from compilewatch.dashboard.parts.parts import PageContent, Table, flat
from compilewatch.dashboard.read.data import read_choices
from compilewatch.db.engine.session import open_database
from compilewatch.db.queries.selection import Filters
from compilewatch.db.queries.trials import trial_records
from tests.builders import MS, make_trial, make_workload
from tests.dashboard.asking import ask
from tests.dashboard.conftest import DATABASE, Store
from tests.runner.terminal import in_this_process

# Workload: what it says of its items, its batch, eager and compiled latency in ms; then by hand items, word.
BY_HAND: dict[str, tuple[dict[str, Any], float, float, float, str]] = {
    "llm": ({"items_per_iteration": 512.0, "item": "token", "batch_size": 4}, 8, 5, 512, "tokens"),
    "vision": ({"items_per_iteration": 64.0, "item": "image", "batch_size": 64}, 20, 10, 64, "images"),
    "own": ({"items_per_iteration": None, "item": None, "batch_size": 12}, 6, 4, 12, "samples"),
    "step": ({"items_per_iteration": None, "item": None, "batch_size": None}, 2, 1, 1, "steps"),
    "plural": ({"items_per_iteration": 3.0, "item": "rows", "batch_size": 1}, 3, 2, 3, "rows"),
}
"""Five workloads with eager and default are ten cases."""
CASES = list(product(BY_HAND, ("eager", "default")))


def expected(workload: str, strategy: str) -> float:
    _, eager_ms, compiled_ms, items, _ = BY_HAND[workload]
    return items / ((eager_ms if strategy == "eager" else compiled_ms) / 1000)


@pytest.fixture(scope="module")
def url(store_once: Store) -> str:
    return store_once(
        make_trial(
            workload=make_workload(name, **fields),
            strategy=strategy,
            build=build,
            run_id="run",
            trial_id=f"{name}-{strategy}-{build}-{nth}",
            latency_ns=(eager_ms if strategy == "eager" else compiled_ms) * MS,
            control_latency_ns=eager_ms * MS,
            spread=0.0,
        )
        for nth in range(4)
        for build in ("2.12.0", "2.13.0")
        for name, (fields, eager_ms, compiled_ms, _, _) in BY_HAND.items()
        for strategy in ("eager", "default")
    )


@pytest.fixture
def told(url: str, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv(DATABASE, url)
    return url


def tables(page: PageContent) -> Iterator[Table]:
    return (part for part in flat((*page.parts, *page.appendix())) if isinstance(part, Table))


def close(value: float) -> object:
    return pytest.approx(value, rel=1e-6)


def test_api_history_and_badge(told: str, tmp_path: Path) -> None:
    app = Starlette(routes=routes())
    rows = ask(app, "/api/v1/break-even", {}).json["rows"]
    for workload, strategy in CASES:
        per_s = expected(workload, strategy)
        (row,) = (each for each in rows if (each["workload"], each["strategy"]) == (workload, strategy))
        assert row["throughput_per_s"] == close(per_s)
        assert f"{row['item']}s" == BY_HAND[workload][4]
        series = ask(app, "/api/v1/series", {"workload": workload, "strategy": strategy}).json["rows"]
        points = ask(app, f"/api/v1/series/{series[0]['series_id']}", {}).json["rows"]
        assert [each["throughput_per_s"] for each in points] == [close(per_s)] * len(points)
        if strategy != "eager":
            beside = close(expected(workload, "eager"))
            assert [each["control_throughput_per_s"] for each in points] == [beside] * len(points)
        badge = ask(app, f"/badge/{workload}/{strategy}.svg", {"metric": "throughput"}).body.decode()
        assert f"{BY_HAND[workload][4]}/s" in badge
        history = ("history", "--metric", "throughput", "-w", workload, "-s", strategy, "--db", told)
        ended = in_this_process(*history, "--json", cwd=tmp_path)
        values = [each["value"] for each in json.loads(ended.stdout)["points"]]
        assert values == [close(per_s)] * len(values)
    assert values
    assert f"{BY_HAND[workload][4]}/s" in in_this_process(*history, cwd=tmp_path).stdout


def test_show_and_export(told: str, tmp_path: Path) -> None:
    out = tmp_path / "trials.csv"
    in_this_process("export", "--format", "csv", "--db", told, "--output", str(out), cwd=tmp_path)
    rows = list(csv.DictReader(out.read_text().splitlines()))
    for workload, strategy in CASES:
        with open_database(told) as database:
            trials = list(trial_records(database, Filters(workloads=(workload,), strategies=(strategy,))))
        shown = in_this_process("show", trials[0].trial_id, "--db", told, cwd=tmp_path).stdout
        (line,) = (line for line in shown.splitlines() if line.startswith("throughput"))
        assert BY_HAND[workload][4] in line
        mine = [row for row in rows if (row["workload"], row["strategy"]) == (workload, strategy)]
        per_s = close(expected(workload, strategy))
        assert [float(row["throughput_per_s"]) for row in mine] == [per_s] * len(trials)


def test_trends_and_upgrade_offer_it(told: str) -> None:
    choices = read_choices()
    base, head = (key for key, name in choices.builds.items())
    link = Link(
        page=Page.WORKLOAD, machine=choices.newest_machine, focus="llm", metric="throughput", axis="torch"
    )
    assert "Throughput" in trends.page(link).headline
    link = Link(page=Page.UPGRADE, machine=choices.newest_machine, base=base, head=head, metric="throughput")
    (cases,) = (each for each in tables(upgrade.page(link)) if each.key == "upgrade-cases")
    assert {(row["workload"], row["strategy"]) for row in cases.frame.to_dict("records")} == set(CASES)
    assert set(cases.frame["change"]) == {0.0}
