"""Break-even: its lines are those of its table, and why a case never pays off is one sentence everywhere."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.applications import Starlette

from compilewatch.dashboard.api.routes import routes
from compilewatch.dashboard.links.links import Link, Page
from compilewatch.dashboard.pages.break_even import content as break_even
from compilewatch.dashboard.parts.parts import LEFT_OUT, Chart, Lines, PageContent, Table
from compilewatch.dashboard.read.data import read_choices
from compilewatch.db.records.trial import Trial
from compilewatch.runner.cli.app import app as command_line
from compilewatch.runner.cli.front import exit_code_of
from tests.builders import MS, SECOND, make_history, make_trial
from tests.dashboard.asking import ask
from tests.dashboard.conftest import Store, opened, texts

REASON = "it is not faster than eager (0.6"


def test_a_case_that_never_pays_off_has_its_reason_everywhere(
    store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    slower = make_history(
        workloads=("mlp",),
        latency_ns=lambda _workload, strategy, _run: 12 * MS if strategy == "eager" else 18 * MS,
    )
    url = store(slower)
    assert f"mlp with default: break-even is never, {REASON}" in texts(
        opened(Link(page=Page.BREAK_EVEN, focus="mlp"))
    ).replace("\\", "").replace("\u2060", "")
    api = Starlette(routes=routes())
    rows = ask(api, "/api/v1/break-even").json["rows"]
    table = ask(api, "/api/v1/break-even", {"format": "csv"}).table
    reasons = {row["strategy"]: row["reason"] for row in rows}
    assert reasons["eager"] is None
    assert reasons["default"].startswith(REASON)
    assert {row["strategy"]: row["reason"] for row in table} == {**reasons, "eager": ""}
    capsys.readouterr()
    assert exit_code_of(command_line, ["break-even", "--db", url]) == 0
    assert REASON in capsys.readouterr().out


def test_a_case_that_failed_is_listed_once(store: Store) -> None:
    cases = [("mlp", strategy, 0) for strategy in ("eager", "default")]
    store(make_history(workloads=("mlp",), builds=("2.13.0",), failures=cases))
    (left_out,) = (part for part in _page().parts if isinstance(part, Lines) and part.title == LEFT_OUT)
    assert sorted(left_out.lines) == [
        f"mlp with {strategy}: failed in all 3 trials (out of memory)" for strategy in ("default", "eager")
    ]


def _page(**link: Any) -> PageContent:
    choices = read_choices()
    return break_even.page(Link(page=Page.BREAK_EVEN, machine=choices.newest_machine, focus="mlp", **link))


def _drifting(eager_ms: dict[str, float], trials: int = 1) -> list[Trial]:
    """So many equal trials of mlp per strategy; each strategy has an eager of its own, in ms."""
    return [
        make_trial(
            workload="mlp",
            strategy=strategy,
            trial_id=f"trial-{strategy}-{number}",
            run_id="run",
            latency_ns=0.5 * eager * MS,
            control_latency_ns=eager * MS,
            compile_ns=cost_s * SECOND,
        )
        for (strategy, eager), cost_s in zip(eager_ms.items(), (80, 82), strict=True)
        for number in range(trials)
    ]


def test_a_first_look_is_no_break_even_and_no_best_strategy(store: Store) -> None:
    store(_drifting({"default": 26.6, "reduce-overhead": 35.6}))
    shown = _page(steps=1_000_000)
    assert shown.headline.startswith("mlp: no difference shown")
    (chart,) = (part for part in shown.parts if isinstance(part, Chart) and part.key == "break-even-curves")
    assert chart.chart.finding.startswith("A first look")
    assert chart.chart.frames["crossings"].empty
    plan = next(part for part in shown.parts if isinstance(part, Table) and part.key == "break-even-table")
    assert set(plan.frame["pays_off"]) <= {"first look", "reference"}
    assert plan.frame["steps"].isna().all()
