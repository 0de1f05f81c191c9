"""Break-even: its lines are those of its table, and why a case never pays off is one sentence everywhere."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.applications import Starlette

from dashboard.api.routes import routes
from dashboard.links.links import Link, Page
from dashboard.pages.break_even import content as break_even
from dashboard.parts.parts import Chart, Lines, PageContent, Table
from dashboard.read.data import filters_of, read_cases, read_choices
from dashboard.read.snapshots import Snapshot
from db import units
from db.records.trial import Trial
from runner.cli.app import app as command_line
from runner.cli.front import exit_code_of
from tests.builders import MS, SECOND, make_history, make_trial
from tests.dashboard.asking import ask
from tests.dashboard.conftest import Store, opened, texts

REASON = "its median latency, 18.1 ms, is not below eager's, 12.1 ms"


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
    )
    api = Starlette(routes=routes())
    rows = ask(api, "/api/v1/break-even").json["rows"]
    table = ask(api, "/api/v1/break-even", {"format": "csv"}).table
    assert {row["strategy"]: row["reason"] for row in rows} == {"eager": None, "default": REASON}
    assert {row["strategy"]: row["reason"] for row in table} == {"eager": "", "default": REASON}
    capsys.readouterr()
    assert exit_code_of(command_line, ["break-even", "--db", url]) == 0
    assert REASON in capsys.readouterr().out


def _page(**link: Any) -> PageContent:
    snapshot = Snapshot.now()
    choices = read_choices(snapshot)
    return break_even.page(
        snapshot, Link(page=Page.BREAK_EVEN, machine=choices.newest_machine, focus="mlp", **link)
    )


def _drifting(eager_ms: dict[str, float]) -> list[Trial]:
    """A trial of mlp per strategy; each process has an eager of its own, in ms."""
    return [
        make_trial(
            workload="mlp",
            strategy=strategy,
            trial_id=f"trial-{strategy}",
            run_id="run",
            latency_ns=0.5 * eager * MS,
            control_latency_ns=eager * MS,
            compile_ns=cost_s * SECOND,
        )
        for (strategy, eager), cost_s in zip(eager_ms.items(), (80, 82), strict=True)
    ]


def test_lines_begin_at_the_compile_cost_of_their_table(store: Store) -> None:
    """Of two processes whose eager differs the cheaper compilation stays the cheaper one."""
    store(_drifting({"reduce-overhead": 35.6, "default": 26.6}))
    shown = _page(steps=10_000)
    (chart,) = (part for part in shown.parts if isinstance(part, Chart) and part.key == "break-even-curves")
    (plan,) = (part for part in shown.parts if isinstance(part, Table) and part.key == "break-even-table")
    first = chart.chart.frames["main"].groupby("strategy")["total"].first()
    assert first["reduce-overhead"] < first["default"]
    rows = plan.frame.set_index("strategy")
    snapshot = Snapshot.now()
    cases = read_cases(snapshot, filters_of(shown.link)).set_index("strategy")
    for name in ("default", "reduce-overhead"):
        case = cases.loc[name]
        total = case["compile_cost_ns"] + 10_000 * case["latency_ns"]
        assert rows.loc[name, "day"] == units.duration(total)
        assert rows.loc[name, "saved"] == units.duration(10_000 * case["control_latency_ns"] - total)
        assert rows.loc[name, "eager"] == units.duration(case["control_latency_ns"])


@pytest.mark.parametrize(("other", "warned"), [(35.6, True), (26.9, False)])
def test_eager_that_differs_between_processes_is_said(store: Store, other: float, warned: bool) -> None:
    store(_drifting({"default": 26.6, "reduce-overhead": other}))
    found = [part for part in _page().parts if part.key == "eager-differs"]
    assert bool(found) == warned
    if warned:
        (said,) = found
        assert isinstance(said, Lines)
        assert "33.8 %" in said.lines[0]
        assert "beside default" in said.lines[0]
        assert "beside reduce-overhead" in said.lines[0]
