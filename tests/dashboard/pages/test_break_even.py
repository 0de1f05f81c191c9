"""Break-even: its lines are those of its table, and why a case never pays off is one sentence everywhere."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.applications import Starlette

from dashboard.api.routes import routes
from dashboard.links.links import Link, Page
from dashboard.pages.break_even import content as break_even
from dashboard.parts.parts import Chart, Figures, PageContent, Table
from dashboard.read.data import filters_of, read_cases, read_choices
from db import units
from db.records.trial import Trial
from runner.cli.app import app as command_line
from runner.cli.front import exit_code_of
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


def test_lines_begin_at_the_compile_cost_of_their_table(store: Store) -> None:
    """Of two processes whose eager differs the cheaper compilation stays the cheaper one."""
    store(_drifting({"reduce-overhead": 35.6, "default": 26.6}, trials=2))
    shown = _page(steps=10_000)
    (chart,) = (part for part in shown.parts if isinstance(part, Chart) and part.key == "break-even-curves")
    (plan,) = (part for part in shown.parts if isinstance(part, Table) and part.key == "break-even-table")
    first = chart.chart.frames["main"].groupby("strategy")["total"].first()
    assert first["reduce-overhead"] < first["default"]
    rows = plan.frame.set_index("strategy")
    cases = read_cases(filters_of(shown.link)).set_index("strategy")
    for name in ("default", "reduce-overhead"):
        case, row = cases.loc[name], rows.loc[name]
        assert row["cost"] == case["compile_cost_ns"]
        assert row["step"] == pytest.approx(case["pooled_eager_ns"] / case["speedup"])
        assert row["day"] == pytest.approx(row["cost"] + 10_000 * row["step"])
        assert row["saved"] == pytest.approx(10_000 * case["pooled_eager_ns"] - row["day"])
        repaid = row["cost"] + row["steps"] * row["step"]
        assert 0 <= row["steps"] * case["pooled_eager_ns"] - repaid < case["pooled_eager_ns"]


def test_card_table_and_title_are_of_one_row_and_the_lines_cross_at_the_mark(store: Store) -> None:
    store(
        make_history(workloads=("mlp",), strategies=("eager", "default", "max-autotune"), builds=("2.13.0",))
    )
    for steps in (1, 700, 100_000):
        shown = _page(steps=steps)
        by_key = {part.key: part for part in shown.parts}
        chart, plan, cards = (by_key[key] for key in ("break-even-curves", "break-even-table", "plan"))
        assert isinstance(chart, Chart)
        assert isinstance(plan, Table)
        assert isinstance(cards, Figures)
        best = plan.frame.loc[plan.frame["day"].idxmin()]
        texts_of = {figure.title: figure for figure in cards.figures}
        if texts_of["Fastest overall"].text != "no difference shown":
            assert texts_of["Fastest overall"].text == best["strategy"]
            assert best["strategy"] in shown.headline or (
                best["strategy"],
                "stay eager" in shown.headline,
            ) == (
                "eager",
                True,
            )
        assert texts_of["Total per day"].text == units.duration(best["day"])
        frames = chart.chart.frames
        first = plan.frame[plan.frame["steps"].notna()].sort_values("steps").iloc[0]
        assert units.steps(int(first["steps"])) in chart.chart.finding
        marks = frames["crossings"].set_index("strategy")
        eager = plan.frame.set_index("strategy").loc["eager", "step"]
        for name, mark in marks[marks["says"].str.contains("pays off")].iterrows():
            row = plan.frame.set_index("strategy").loc[name]
            assert mark["steps"] == row["steps"]
            assert row["cost"] + mark["steps"] * row["step"] <= mark["steps"] * eager
            assert row["cost"] + (mark["steps"] - 1) * row["step"] > (mark["steps"] - 1) * eager


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
