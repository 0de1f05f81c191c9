"""Chart rows and specifications without a server: what is drawn, how labelled, and that Vega takes it."""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction
from functools import partial

import altair as alt
import pandas as pd
import pytest
from jsonschema import Draft7Validator

from compilewatch.dashboard.charts import break_even, cold_start, trend_rows, trends
from compilewatch.dashboard.document import svg
from compilewatch.dashboard.pages.modes import charts as heat_map
from compilewatch.dashboard.pages.trial import charts as samples
from compilewatch.dashboard.parts import sizes, speedups
from compilewatch.dashboard.read.shaping import build_changes, build_names, confounded, with_labels
from compilewatch.dashboard.text import theme
from compilewatch.db.columns.metrics import HISTORY_METRICS, METRICS
from compilewatch.db.engine.session import open_database
from compilewatch.db.metrics.case_modes import mode_options
from compilewatch.db.metrics.cases import summarize_cases
from compilewatch.db.metrics.eligibility import nanoseconds
from compilewatch.db.metrics.groups import row_dicts
from compilewatch.db.metrics.mode_choice import ModeOption
from compilewatch.db.metrics.trend import series_points
from compilewatch.db.queries.facets import builds
from compilewatch.db.queries.trials import trials_frame

VEGA_LITE = Draft7Validator(alt.load_schema())
STRATEGIES = ("eager", "default", "max-autotune")


@pytest.fixture(scope="module")
def trials(filled_url: str) -> pd.DataFrame:
    with open_database(filled_url, read_only=True) as database:
        frame = trials_frame(database)
    return with_labels(frame[frame["device"] == "cuda"])


@pytest.fixture(scope="module")
def cases(trials: pd.DataFrame) -> pd.DataFrame:
    return with_labels(summarize_cases(trials[trials["torch"] == "2.13.0"]))


def _specs() -> dict[str, Callable[[], dict]]:
    """Each to be built by the test that asks for it."""
    shown = trend_rows.Window(pd.Timestamp("2026-11-01"), pd.Timestamp("2026-11-20"), 1.0, 2.0)
    found = {
        "speedups": partial(speedups.spec, ("a", "b"), STRATEGIES[1:]),
        "heat map": partial(heat_map.spec, ("a",), STRATEGIES[1:]),
        "scatter": partial(heat_map.pareto_spec, STRATEGIES[1:], heat_map.Ends(1, 9, 0.8, 2), log=False),
        "log scatter": partial(heat_map.pareto_spec, STRATEGIES[1:], heat_map.Ends(1, 90, 0.8, 2), log=True),
        "sizes": partial(
            sizes._spec,
            STRATEGIES,
            (False, True),
            sizes.Panel("batch size", "Throughput", (1, 8), (1.0, 90.0), (30, 20)),
        ),
        "cold start": partial(cold_start.spec, ("a · default",), ("cold", "warm"), ("import", "trace"), 9.0),
        "samples": partial(samples.over_time, STRATEGIES[:2]),
        "histogram": partial(samples.histogram, STRATEGIES[:2]),
    }
    for scale in ("linear", "log"):
        found[f"break-even {scale}"] = partial(break_even.spec, STRATEGIES, "s", scale, 1000, (1.0, 9.0))
        for axis in ("time", "torch"):
            # what a metric changes in them does not depend on axis and scale
            for metric in HISTORY_METRICS if (axis, scale) == ("time", "linear") else ("latency",):
                found[f"trend {metric} {axis} {scale}"] = partial(
                    trends.spec,
                    metric,
                    axis=axis,
                    scale=scale,
                    strategies=STRATEGIES,
                    builds=("x",),
                    shown=shown,
                    frames=("main", "events", *(("targets", "changes") if axis == "time" else ())),
                )
    return found


SPECS = _specs()


@pytest.mark.parametrize("name", SPECS)
def test_a_specification_follows_the_schema_and_says_its_units_and_how_many(name: str) -> None:
    spec = SPECS[name]()
    assert [error.message for error in VEGA_LITE.iter_errors(spec)] == []
    text = str(spec)
    if name.startswith("trend"):
        figure = METRICS[name.split()[1]]
        assert f"{figure.name} ({figure.axis_unit})" in text
    if not name.startswith(("samples", "break-even")):
        assert "(n)" in text
    assert "'legend': None" in text or "'orient': 'top'" in text


def test_strategies_look_the_same_everywhere_and_differ_from_each_other() -> None:
    names = [
        "default",
        "eager",
        "reduce-overhead",
        "max-autotune",
        "max-autotune-no-cudagraphs",
        "default+dynamic",
    ]
    looks = theme.looks(names)
    assert looks == {name: theme.looks([name])[name] for name in looks}
    assert len({(look.colour, tuple(look.dash), look.shape) for look in looks.values()}) == len(names)
    assert len({look.colour for name, look in looks.items() if "+" not in name}) == 5


def test_over_builds_the_newest_point_is_that_of_the_newest_version() -> None:
    """Builds measured by turns: the older one happened to come last."""
    moments = pd.to_datetime(["2026-11-20T03:00Z", "2026-11-20T03:01Z", "2026-11-19T03:00Z"])
    points = pd.DataFrame(
        {"build_id": ["new", "old", "old"], "run_id": ["2", "2", "1"], "last_started_at": moments}
    )
    by_version = trend_rows.in_order(points, "torch", ["old", "new"])
    assert list(by_version["build_id"]) == ["old", "old", "new"]
    by_time = trend_rows.in_order(points, "time", ["old", "new"])
    assert list(zip(by_time["run_id"], by_time["build_id"], strict=True)) == [
        ("1", "old"),
        ("2", "old"),
        ("2", "new"),
    ]


def test_trend_points_thin_out_nothing_and_window_holds_them(trials: pd.DataFrame) -> None:
    points = with_labels(series_points(trials))
    mine = points[points["workload_label"] == "bert-base"]
    rows = trend_rows.frame(mine, "latency", dict.fromkeys(mine["build_id"], "b"))
    assert len(rows) == 3 * 3 + 1
    shown = trend_rows.window(rows)
    assert shown.low <= rows["low"].min()
    assert shown.high >= rows["high"].max()
    assert shown.first <= rows["at"].min() <= rows["at"].max() <= shown.last
    single = trend_rows.window(rows.head(1))
    assert single.last - single.first >= pd.Timedelta(hours=1)
    assert single.high - single.low >= 0.09 * rows["value"].iloc[0]


def test_front_holds_what_no_cheaper_strategy_outruns() -> None:
    def case(workload: str, strategy: str, cost_s: float, speedup: float, *, first_look=False) -> dict:
        ends = ("compile_cost_low_ns", "compile_cost_high_ns", "speedup_low", "speedup_high")
        return {
            "workload_label": workload,
            "strategy": strategy,
            "compile_cost_ns": cost_s * 1e9,
            "speedup": speedup,
            "counted_trials": 1 if first_look else 3,
            "first_look": first_look,
            **dict.fromkeys(ends, pd.NA),
        }

    frame = pd.DataFrame(
        [
            case("a", "default", 5, 1.5),
            case("a", "max-autotune", 50, 1.4),
            case("a", "reduce-overhead", 8, 1.9),
            case("b", "default", 60, 1.1),
            case("b", "reduce-overhead", 50, 1.3, first_look=True),
        ]
    ).astype({"compile_cost_ns": "Float64", "speedup": "Float64"})
    rows = heat_map.front(frame)
    best = rows[rows["best"]]
    assert set(zip(best["workload"], best["strategy"], strict=True)) == {
        ("a", "default"),
        ("a", "reduce-overhead"),
        ("b", "default"),
    }


def test_curves_cross_eager_where_the_crossing_is_marked(cases: pd.DataFrame) -> None:
    options, _ = mode_options(cases[cases["workload_label"] == "elementwise"])
    found = break_even.curves(options, steps=100, restarts=0, log=True)
    mark = found.frames["crossings"].set_index("strategy").loc["default"]
    assert mark["label"] == "1,138"
    compiled = next(option for option in options if option.strategy == "default")
    at = int(mark["steps"])
    assert compiled.total_ns(at) <= compiled.eager_total_ns(at)
    assert compiled.total_ns(at - 1) > compiled.eager_total_ns(at - 1)
    assert len(found.frames["main"]) <= 2000
    assert set(found.frames["main"]["strategy"]) == {option.strategy for option in options}


def test_one_compiled_strategy_takes_over_from_another_where_the_envelope_says() -> None:
    def option(strategy: str, compile_s: int, latency_ms: int) -> ModeOption:
        cost, latency = Fraction(compile_s * 10**9), Fraction(latency_ms * 10**6)
        return ModeOption(strategy, nanoseconds(cost), nanoseconds(latency))

    options = [option("eager", 0, 10), option("default", 4, 8), option("max-autotune", 16, 7)]
    found = break_even.curves(options, steps=100, restarts=0, log=True)
    marks = [
        (mark["strategy"], mark["steps"], mark["says"])
        for mark in found.frames["crossings"].to_dict("records")
    ]
    # 4 s / 2 ms, 16 s / 3 ms, and (16 - 4) s / 1 ms
    assert marks == [
        ("default", 2000, "default pays off after 2,000 steps"),
        ("max-autotune", 5334, "max-autotune pays off after 5,334 steps"),
        ("max-autotune", 12000, "max-autotune is the fastest from 12,000 steps on"),
    ]
    assert found.last_step >= 12000


def test_labels_of_close_crossings_stand_apart() -> None:
    """Each stands away from its nearest neighbour; one between two close ones is far from none of them."""
    marks: list[break_even.Mark] = [{"steps": steps, "label": str(steps)} for steps in (843, 868, 929, 1752)]
    rows = break_even.placed(marks, 10_000, 5_000, log=False).set_index("steps")
    assert rows["side"].to_dict() == {843: "left", 868: "right", 929: "right", 1752: "right"}
    assert rows["far"].idxmin() == 868
    assert rows["far"][868] == pytest.approx((929 - 868) / 5_000)


def test_build_names_tell_builds_apart(filled_url: str) -> None:
    with open_database(filled_url, read_only=True) as database:
        frame = builds(database)
    names = build_names(row_dicts(frame))
    assert len(set(names.values())) == len(frame)
    assert "torch 2.11.0" in names.values()
    assert {name for name in names.values() if "2.13.0" in name} == {
        "torch 2.13.0 (cu130)",
        "torch 2.13.0 (cpu)",
    }


def test_torch_carries_its_own_parts_but_a_driver_beside_it_confounds() -> None:
    before = {"torch": "2.12.0", "torch_git": "a", "triton": "3.5", "driver": "570", "python": "3.11"}
    alone = build_changes(before, {**before, "torch": "2.13.0", "torch_git": "b", "triton": "3.6"})
    assert [change.component for change in alone] == ["torch", "torch git", "triton"]
    assert not confounded(alone)
    assert confounded(build_changes(before, {**before, "torch": "2.13.0", "driver": "580"}))
    assert build_changes(before, dict(before)) == []


def test_slanted_names_leave_one_row_of_the_heat_map_its_height() -> None:
    strategies = ("default", "default+dynamic", "default+dynamic+warm", "max-autotune", "cpp-wrapper")
    shown = {"strength": 0.0, "text": "2.13x", "state": "number", "ink": "dark", "detail": ""}
    cells = pd.DataFrame([{"workload": "mlp", "strategy": name, **shown} for name in strategies])
    drawn = svg.draw(heat_map.spec(("mlp",), strategies), {"main": cells}, width_px=300)
    plot = re.search(r'class="background"[^>]*d="M0,0h[0-9.]+v([0-9.]+)', drawn)
    assert plot is not None
    assert float(plot[1]) > 30
