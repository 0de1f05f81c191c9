"""Chart rows and specifications without a server: what is drawn, how labelled, and that Vega takes it."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from itertools import combinations

import altair as alt
import pandas as pd
import pytest
from jsonschema import Draft7Validator

from dashboard.charts import break_even, cold_start, trend_rows, trends
from dashboard.pages.modes import charts as heat_map
from dashboard.pages.overview import charts as speedups
from dashboard.pages.trial import charts as samples
from dashboard.read.shaping import build_changes, build_names, confounded, with_labels, with_phases
from dashboard.text import theme
from db.columns.metrics import HISTORY_METRICS, METRICS
from db.engine.session import open_database
from db.metrics.case_modes import mode_options
from db.metrics.cases import summarize_cases
from db.metrics.groups import row_dicts
from db.metrics.mode_choice import ModeOption
from db.metrics.quantities import nanoseconds
from db.metrics.trend import series_points
from db.queries.cases.cold_start import cold_starts
from db.queries.facets import builds
from db.queries.trials import trials_frame

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
        "cold start": partial(cold_start.spec, ("a · eager",), ("import torch", "dynamo")),
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
                    targets=axis == "time",
                    changes=axis == "time",
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


def test_the_schema_refuses_what_is_no_chart() -> None:
    broken = {**speedups.spec(("a",), ("default",)), "layer": [{"mark": "blob"}]}
    assert list(VEGA_LITE.iter_errors(broken))


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


def test_marks_tell_the_variants_of_one_base_apart() -> None:
    variants = ["default", "default+dynamic", "default+static", "default+warm", "default+portable"]
    assert len({look.shape for look in theme.looks(variants).values()}) == len(variants)


def test_a_variant_has_a_tint_of_its_bases_colour() -> None:
    """58 % of #0072B2 and 42 % of white: 0 + 107, 66 + 107, 103 + 107."""
    assert theme.colours(["default+dynamic"]) == ["#6BADD2"]


def _lab(colour: str) -> tuple[float, float, float]:
    """CIE 1976 L*a*b* of an sRGB colour under D65 (IEC 61966-2-1)."""
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4
        for part in (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    ]
    weights = ((0.4124, 0.3576, 0.1805), (0.2126, 0.7152, 0.0722), (0.0193, 0.1192, 0.9505))
    x, y, z = (
        (t ** (1 / 3) if t > 0.008856 else 7.787 * t + 16 / 116)
        for t in (
            sum(w * part for w, part in zip(row, linear, strict=True)) / white
            for row, white in zip(weights, (0.9505, 1.0, 1.089), strict=True)
        )
    )
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


@pytest.mark.parametrize(
    "colours",
    [
        list(theme.PHASE_COLOURS.values()),
        *(
            theme.colours(
                [base, *(f"{base}+{name}" for name in ("dynamic", "static", "fullgraph", "regional"))]
            )
            for base in ("default", "reduce-overhead", "max-autotune")
        ),
    ],
)
def test_colours_that_stand_side_by_side_differ(colours: list[str]) -> None:
    """A difference of 2.3 in CIELAB is just noticeable; five times that is plain in a small mark."""
    near = [pair for pair in combinations(colours, 2) if math.dist(*map(_lab, pair)) < 5 * 2.3]
    assert near == []


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


def test_only_compiled_cases_with_a_speedup_are_drawn(cases: pd.DataFrame) -> None:
    rows = speedups.frame(cases)
    assert "eager" not in set(rows["strategy"])
    assert not ((rows["workload"] == "mlp") & (rows["strategy"] == "max-autotune")).any()
    assert (rows["low"] <= rows["speedup"]).all()
    assert (rows["speedup"] <= rows["high"]).all()
    best = rows.set_index(["workload", "strategy"])["speedup_text"][("elementwise", "default")]
    assert speedups.finding(rows) == (
        f"default reaches {best} over eager on elementwise; 2 of 8 cases slower than eager"
    )


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
    def case(workload: str, strategy: str, cost_s: float, speedup: float) -> dict:
        ends = ("compile_cost_low_ns", "compile_cost_high_ns", "speedup_low", "speedup_high")
        return {
            "workload_label": workload,
            "strategy": strategy,
            "compile_cost_ns": cost_s * 1e9,
            "speedup": speedup,
            "counted_trials": 3,
            **dict.fromkeys(ends, pd.NA),
        }

    frame = pd.DataFrame(
        [
            case("a", "default", 5, 1.5),
            case("a", "max-autotune", 50, 1.4),
            case("a", "reduce-overhead", 8, 1.9),
            case("b", "default", 60, 1.1),
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
    assert compiled.total(at).value <= compiled.eager_total(at).value
    assert compiled.total(at - 1).value > compiled.eager_total(at - 1).value
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


def test_never_is_said_and_not_drawn(cases: pd.DataFrame) -> None:
    mine = cases[cases["workload_label"] == "lstm-cell"]
    options, _ = mode_options(mine)
    found = break_even.curves(options, steps=100, restarts=0, log=False)
    assert found.frames["crossings"].empty
    assert break_even.finding(mine, "lstm-cell") == "Compiling never pays off on lstm-cell"


def test_cold_start_bars_add_up_to_the_first_result(
    filled_url: str, trials: pd.DataFrame, cases: pd.DataFrame
) -> None:
    with open_database(filled_url, read_only=True) as database:
        mine = trials[trials["build_id"].isin(set(cases["build_id"]))]
        starts = with_phases(mine, cold_starts(database, list(mine["trial_id"])))
    labels = dict(zip(cases["workload_id"], cases["workload_label"], strict=True))
    rows = cold_start.frame(starts, labels)
    ends = cold_start.totals(rows, {}).set_index("case")["seconds"]
    case = cases[(cases["workload_label"] == "bert-base") & (cases["strategy"] == "default")].iloc[0]
    assert ends["bert-base · default"] == pytest.approx(case["time_to_first_result_ns"] / 1e9, rel=0.02)


def test_samples_are_thinned_and_shares_add_up() -> None:
    many = list(range(1_000_000, 1_010_000))
    rows = samples.frame(many, many[:100], "default")
    assert len(rows) <= 2 * samples.MOST_SAMPLES
    shares = samples.distribution(many, many[:100], "default").groupby("strategy")["share"].sum()
    assert shares.to_dict() == pytest.approx({"default": 1.0, "eager": 1.0})


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


def test_bars_filled_in_have_their_cases_and_height() -> None:
    few, many = (cold_start.spec(tuple(f"case {n}" for n in range(cases)), ("dynamo",)) for cases in (1, 9))
    assert many["height"] - few["height"] == 8 * cold_start._ROW
    for layer in many["layer"]:
        assert layer["encoding"]["y"]["sort"] == [f"case {n}" for n in range(9)]


def test_rows_of_many_workloads_move_together():
    few, many = ([f"model-{number}" for number in range(count)] for count in (4, 48))
    strategies = ("default", "reduce-overhead", "max-autotune")
    for chart in (speedups, heat_map):
        of_few, of_many = (chart.spec(tuple(names), strategies)["height"] for names in (few, many))
        assert of_few > 4 * 40
        assert of_many < 48 * 30
