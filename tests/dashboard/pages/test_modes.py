"""Modes: eager is one of the strategies, and the chart names its points where there is room."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
import pytest

from compilewatch.dashboard.links.links import Link, Page
from compilewatch.dashboard.pages.modes import against, charts
from compilewatch.dashboard.pages.modes import content as modes
from compilewatch.dashboard.pages.trial import content as trial_content
from compilewatch.dashboard.parts.parts import Chart, Figures, Lines, PageContent, Table, flat
from compilewatch.dashboard.read.data import read_choices
from compilewatch.dashboard.render.streamlit_parts import FOLD
from compilewatch.dashboard.text import theme
from compilewatch.db.engine.session import open_database
from compilewatch.db.queries.selection import Filters
from compilewatch.db.queries.trials import trials_frame
from compilewatch.db.records.trial import CacheState, ColdStart, FailureKind, parse_trial
from compilewatch.db.store.trials import set_advice
from compilewatch.db.verdicts.advice import SCHEMA
from tests.builders import MS, make_history, make_strategy, make_trial
from tests.dashboard.conftest import DATABASE, Store, opened, texts
from tests.db.cause.profiles import RECORDED
from tests.record_parts import make_failure


def _page(goal: str) -> PageContent:
    machine = read_choices().newest_machine
    return modes.page(Link(page=Page.MODES, machine=machine, goal=goal, steps=10))


@pytest.fixture(scope="module")
def slower_url(store_once: Store) -> str:
    """vit-b16: every strategy is slower than the eager beside it, and faster than the eager process."""
    fields = {"workload": "vit-b16", "run_id": "run"}
    trials = [
        trial
        for nth in range(3)
        for trial in (
            make_trial(strategy="eager", trial_id=f"eager-{nth}", latency_ns=40 * MS, **fields),
            make_trial(
                strategy="reduce-overhead",
                trial_id=f"ro-{nth}",
                latency_ns=30 * MS,
                control_latency_ns=18 * MS,
                **fields,
            ),
        )
    ]
    fast = make_history(
        workloads=("mlp",),
        strategies=("eager", "default", "max-autotune"),
        builds=("2.13.0",),
        latency_ns=lambda _workload, strategy, _run: (
            {"eager": 9, "default": 6, "max-autotune": 5}[strategy] * MS
        ),
    )
    return store_once([*fast, *(trial.model_copy(update={"build": fast[0].build}) for trial in trials)])


@pytest.fixture
def slower(slower_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(DATABASE, slower_url)


@pytest.mark.parametrize("goal", ["latency", "steps"])
def test_slower_code_is_never_the_best_strategy(slower: None, goal: str) -> None:
    (best,) = (part for part in _page(goal).parts if isinstance(part, Table) and part.key == "modes-best")
    chosen = dict(zip(best.frame["workload"], best.frame["strategy"], strict=True))
    assert chosen["vit-b16"] == "eager"


def test_the_headline_counts_eager(slower: None) -> None:
    said = _page("latency").headline
    assert said == "Fastest of 2 workloads: eager 1, max-autotune 1"


@pytest.mark.parametrize("trials", [1, 3])
def test_what_is_not_told_apart_is_not_called_best(store: Store, trials: int) -> None:
    """A first look ranks nothing; of three trials intervals must clear each other."""
    store(
        make_history(
            workloads=("mlp",),
            strategies=("eager", "default", "max-autotune"),
            builds=("2.13.0",),
            trials_per_case=trials,
            between_trials=0.05,
            latency_ns=lambda _workload, strategy, _run: (
                {"eager": 9, "default": 5, "max-autotune": 4.99}[strategy] * MS
            ),
        )
    )
    page = _page("latency")
    assert page.headline == "No difference shown between strategies on 1 workload"
    (best,) = (part for part in page.parts if isinstance(part, Table) and part.key == "modes-best")
    assert best.frame["strategy"].tolist() == ["no difference shown"]
    assert {"default", "max-autotune"} - {"eager"} <= {*best.frame["rivals"].iloc[0].split(", "), "eager"}


def test_what_was_never_steady_has_no_latency_and_is_no_choice(store: Store) -> None:
    reason = "The compiler ran in 46 of 47 calls after the first. It recompiles on `self.calls` (46 times)."
    failure = make_failure(FailureKind.NOT_STEADY, phase="warmup", message=reason)
    calls = {"warmup_ns": [90 * MS] * 47, "control_warmup_ns": [9 * MS] * 5}
    never = [
        make_trial(trial_id=f"never-{nth}", failure=failure, cold_start=ColdStart(first_call_ns=MS), **calls)
        for nth in range(3)
    ]
    eager = [
        make_trial(strategy="eager", trial_id=f"eager-{nth}", seed=nth, latency_ns=9 * MS) for nth in range(3)
    ]
    store([*never, *eager])
    page = _page("latency")
    assert page.headline == "No compiled case has a speedup"
    frames = [part.frame for part in page.parts if isinstance(part, Table)]
    frames += [
        frame for part in page.parts if isinstance(part, Chart) for frame in part.chart.frames.values()
    ]
    of_default = [frame[frame["strategy"] == "default"] for frame in frames if "strategy" in frame]
    for name in ("speedup", "latency", "break_even"):
        assert all(rows[name].isna().all() for rows in of_default if name in rows)
    assert "not steady" in str(page.parts)
    shown = trial_content.page(Link(page=Page.TRIAL, trial="never-0"))
    assert shown.headline == "bert-base with default: not steady"
    assert [part for part in shown.parts if isinstance(part, Lines) and reason in part.lines]
    (figures,) = (part for part in shown.parts if isinstance(part, Figures))
    assert [(each.title, each.text) for each in figures.figures] == [("Eager", "9.00 ms")]


def test_eager_without_a_process_of_its_own_is_the_one_beside_a_slower_strategy(store: Store) -> None:
    slow = make_trial(workload="mlp", strategy="default", latency_ns=9 * MS, control_latency_ns=8 * MS)
    store([slow])
    (best,) = (
        part for part in _page("latency").parts if isinstance(part, Table) and part.key == "modes-best"
    )
    (row,) = best.frame.to_dict("records")
    assert (row["strategy"], row["value"]) == ("no difference shown", row["eager"])
    assert row["ratio"] == 1


def test_profiled_cases_have_a_roofline(store: Store) -> None:
    store(map(parse_trial, RECORDED.read_text(encoding="utf-8").splitlines()))
    page = _page("latency")
    (chart,) = (part for part in page.parts if part.key == "modes-roofline")
    assert isinstance(chart, Chart)
    assert chart.chart.finding == ("Eager steps of 2 profiled workloads: 1 compute-bound, 1 memory-bound")
    titles = [chart.chart.spec["layer"][1]["encoding"][axis]["title"] for axis in "xy"]
    assert titles == ["Arithmetic intensity (operations per byte)", "Operations per second (TFLOP/s)"]
    formats = {chart.chart.spec["layer"][1]["encoding"][axis]["axis"]["format"] for axis in "xy"}
    assert formats == {",~r"}, "1,000 and 0.05"
    roof = chart.chart.frames["roofs"]
    # By hand: 2 x 4096^3 operations in 157,088 ns are 874.9 TFLOP/s; on the slope, bytes/s x intensity.
    assert roof["rate"].max() == pytest.approx(874.9, rel=1e-3)
    assert roof["rate"].iloc[0] == pytest.approx(roof["intensity"].iloc[0] * 2 * 268435456 / 180800e-9 / 1e12)
    points = chart.chart.frames["main"]
    assert (points["rate"] <= 874.9).all()
    for frame in ("names", "names_narrow"):
        assert set(chart.chart.frames[frame]["workload"]) == set(points["workload"])
    (table,) = (part for part in page.parts if part.key == "modes-work")
    cells = table.frame.set_index(["workload", "strategy"]).loc[("mlp-4096", "eager")]
    assert (cells["operations_text"], cells["bytes_text"], cells["bound"]) == (
        "157 µs",
        "93.3 µs",
        "compute-bound",
    )


def test_code_from_the_cache_that_is_slower_is_a_finding(store: Store) -> None:
    warm = make_strategy("default").model_copy(update={"name": "default+warm", "cache": CacheState.WARM})
    trials = [
        make_trial(
            workload="mlp",
            strategy=strategy,
            run_id="run",
            trial_id=f"{latency}-{nth}",
            latency_ns=(latency + 0.01 * (nth % 3)) * MS,
            control_latency_ns=12 * MS,
        )
        for nth in range(8)
        for strategy, latency in (("default", 8.0), (warm, 9.0))
    ]
    store(trials)
    choices = read_choices()
    link = Link(page=Page.MODES, machine=choices.newest_machine, build=next(iter(choices.builds)))
    parts = modes.page(link).parts
    (finding,) = (part for part in parts if isinstance(part, Lines) and part.key == "modes-cache")
    assert finding.tone == "bad"
    assert "default+warm 9.0" in finding.lines[0]
    (matrix,) = (part for part in flat(parts) if isinstance(part, Table) and part.key == "modes-against")
    assert matrix.frame["default"].iloc[0].startswith("+12.")


def test_what_is_folded_is_made_once_somebody_opens_it(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    store(make_history(workloads=("mlp",), builds=("2.13.0",)))
    judged: list[str] = []
    differences = against.differences
    monkeypatch.setattr(against, "differences", lambda *of: judged.append("pairs") or differences(*of))
    page = opened(Link(page=Page.MODES), folded=("modes-against",))
    assert "One strategy against another" in {fold.label for fold in page.expander}
    assert judged == []
    page.session_state[f"modes-against{FOLD}"] = True
    page.run()
    assert judged == ["pairs"]
    assert "Negative is faster." in texts(page)
    page.run()
    assert judged == ["pairs"], "once, however often the page is drawn"


def test_what_advise_found_stands_on_the_tab_of_its_model(slower: None, slower_url: str) -> None:
    row = {"candidate": "max-autotune", "trials": 3, "gain": 1.8, "interval": [1.5, 2.1], "stands": "choice"}
    worse = {"candidate": "default", "trials": 2, "gain": 1.2, "interval": None, "stands": "worse"}
    document = {
        "schema": SCHEMA,
        **{"workload": "mlp", "batch_size": None, "objective": "latency", "choice": "max-autotune"},
        **{"shown": True, "decided": True, "broken": None, "paste": "model = torch.compile(model)"},
        **{"configuration": ["[[suite]]"], "pays_off": "It pays off from step 12 on.", "compiled": None},
        **{"figures": {}, "not_applicable": {}, "one_more_hour": "", "steps": None, "look": None},
        "candidates": [
            row | {"batch_size": None, "why": ""},
            worse | {"batch_size": None, "why": "1.20x of it"},
        ],
    }
    with open_database(slower_url) as database:
        runs = sorted(set(trials_frame(database, Filters(workloads=("mlp",)))["run_id"]))
        set_advice(database, runs[-1], document)
    link = Link(page=Page.MODES, machine=read_choices().newest_machine)
    said = {
        each.key: each
        for each in flat(modes.page(replace(link, focus="mlp")).parts)
        if isinstance(each, Lines)
    }
    assert said["modes-advice"].lines[:2] == (
        "mlp: model = torch.compile(model)",
        "Shown: it is 1.80x as fast as eager, 1.50x to 2.10x with 95 % over the whole race.",
    )
    assert "Ruled out: default: 1.20x of it." in said["modes-advice"].lines
    other = flat(modes.page(replace(link, focus="vit-b16")).parts)
    assert "modes-advice" not in {each.key for each in other if isinstance(each, Lines)}


def test_the_headline_adds_up_where_more_strategies_win_than_it_names(store: Store) -> None:
    fastest = ("default", "reduce-overhead", "max-autotune")
    store(
        [
            make_trial(
                workload=f"mlp-{best}", strategy=name, seed=seed, latency_ns=(4 if name == best else 8) * MS
            )
            for best in fastest
            for name in fastest
            for seed in range(3)
        ]
    )
    assert "Fastest of 3 workloads: default 1, reduce-overhead 1, others 1" in texts(
        opened(Link(page=Page.MODES))
    )


def test_each_number_of_the_map_stands_out_from_its_colour() -> None:
    """As WCAG 2.2 asks in 1.4.3; a colour between two of the scale is mixed of them."""

    def luminance(rgb: list[float]) -> float:
        parts = [
            part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4
            for part in (each / 255 for each in rgb)
        ]
        return sum(part * share for part, share in zip(parts, (0.2126, 0.7152, 0.0722), strict=True))

    stops = [[int(colour[at : at + 2], 16) for at in (1, 3, 5)] for colour in theme.DIVERGING]
    for step in range(-100, 101):
        speedup = 2 ** (step / 100)
        cases = pd.DataFrame([_CASE_OF_MAP | {"speedup": speedup}])
        (cell,) = charts.cells(cases, {}, ["mlp"]).to_dict("records")
        place = (step / 100 + 1) / 2 * (len(stops) - 1)
        at = min(int(place), len(stops) - 2)
        ground = luminance(
            [a + (b - a) * (place - at) for a, b in zip(stops[at], stops[at + 1], strict=True)]
        )
        ink = luminance([255.0] * 3 if cell["ink"] == "white" else [0.0] * 3)
        low, high = sorted((ground, ink))
        assert (high + 0.05) / (low + 0.05) >= 4.5, speedup


_CASE_OF_MAP = {
    "workload_label": "mlp",
    "strategy": "default",
    "trials": 3,
    "counted_trials": 3,
    "timing_method": None,
    "bound": None,
    "first_look": False,
    "nothing_compiled": False,
    "speedup_low": None,
    "speedup_high": None,
    "latency_ns": 1e6,
}
