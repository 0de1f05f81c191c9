"""Overview: its sentence counts what is stored, its rows add up, and eager is a strategy."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pandas as pd
import pytest

from compilewatch.dashboard.links.links import Link, Page
from compilewatch.dashboard.pages.break_even import content as break_even
from compilewatch.dashboard.pages.modes import content as modes
from compilewatch.dashboard.pages.overview import content
from compilewatch.dashboard.pages.workload import content as workload
from compilewatch.dashboard.parts.parts import (
    LEFT_OUT,
    Chart,
    Figures,
    Lines,
    PageContent,
    Table,
    flat,
    named,
)
from compilewatch.dashboard.verdicts import headlines
from compilewatch.db import units
from compilewatch.db.engine.session import open_database
from compilewatch.db.judge.results import Tally
from compilewatch.db.queries.facets import builds, machines
from compilewatch.db.records.trial import Trial
from tests.builders import MS, START, make_build, make_history, make_trial
from tests.dashboard.conftest import Store, opened

TIMES = {"eager": 10.0, "default": 11.0, "max-autotune": 8.0}


def page_of(store: Store, trials: list[Trial], **link: Any) -> PageContent:
    """The page of the newest build of the only machine."""
    with open_database(store(trials), read_only=True) as database:
        machine = str(machines(database)["machine_id"].iloc[0])
        newest = builds(database).iloc[-1]["build_id"]
    link = {"machine": machine, "build": newest} | link
    return content.page(Link(page=Page.OVERVIEW, **link))


def table(page: PageContent, key: str) -> pd.DataFrame:
    (found,) = named(page.parts, key)
    assert isinstance(found, Table)
    return found.frame


def figures(page: PageContent) -> dict[str, str]:
    (found,) = named(page.parts, "figures")
    assert isinstance(found, Figures)
    return {each.title: each.text for each in found.figures}


def test_a_page_of_failures_alone_opens_and_calls_nothing_fastest(store: Store) -> None:
    page = page_of(store, [make_trial(failure="compile_error"), make_trial(failure="compile_error")])
    (row,) = table(page, "overview-table").to_dict("records")
    assert row["state"] == "1 failing"
    assert row["fastest"] == units.MISSING
    assert pd.isna(row["eager_rate"])


def test_a_first_mistake_is_no_headline_once_another_run_passed(store: Store) -> None:
    mistake = make_trial(workload="model:Ranker", run_id="r0", failure="compile_error", started_at=START)
    mended = make_history(
        workloads=("ranker",),
        strategies=("default",),
        builds=("2.13.0",),
        start=START + timedelta(hours=1),
    )
    alone = page_of(store, [mistake])
    assert "1 case failing" in alone.headline
    page = page_of(store, [mistake, *mended])
    assert "failing" not in page.headline
    assert figures(page)["Failing cases"] == "0"
    (left_out,) = (part for part in page.parts if isinstance(part, Lines) and part.title == LEFT_OUT)
    assert left_out.lines[0].endswith("in an earlier run")
    link = Link(machine=page.link.machine, build=page.link.build)
    assert break_even.page(replace(link, page=Page.BREAK_EVEN)).link.focus == "ranker"
    failed = workload.page(replace(link, page=Page.WORKLOAD, focus="model:Ranker"))
    assert "only eager" not in failed.headline
    assert "of 2 workloads" in modes.page(replace(link, page=Page.MODES)).headline


def history(**more: Any) -> list[Trial]:
    def latency_ns(workload: str, strategy: str, run: int) -> float:
        slow = 1.3 if workload == "mlp" and strategy != "eager" else 1.0
        return TIMES[strategy] * slow * MS * (0.5 if workload == "mlp" and run else 1.0)

    return make_history(
        **{
            "workloads": ("bert-base", "mlp"),
            "strategies": tuple(TIMES),
            "builds": ("2.12.0", "2.13.0"),
            "latency_ns": latency_ns,
            "trials_per_case": 5,
            "start": START - timedelta(days=2),
        }
        | more
    )


def test_eager_is_a_strategy(store: Store) -> None:
    """Compiled code that is slower than eager is no fastest strategy, and lowers no mean."""
    page = page_of(store, history())
    rows = table(page, "overview-table").set_index("workload")
    assert rows["fastest"].to_dict() == {"bert-base": "max-autotune", "mlp": "eager"}
    assert rows["strategy"].to_dict() == {"bert-base": "max-autotune", "mlp": "max-autotune"}
    # mlp trains, so each task has one workload: 10 / 8 with max-autotune, and 1 with eager.
    assert figures(page)["Inference, best choice"] == "1.25x"
    assert figures(page)["Training, best choice"] == "1.00x"


def test_the_history_of_a_row_is_of_what_it_tells(store: Store) -> None:
    """The fastest strategy, measured with the newest build alone, has no history."""
    newest = [
        each for each in history() if each.strategy.name != "max-autotune" or each.build.torch == "2.13.0"
    ]
    rows = table(page_of(store, newest), "overview-table").set_index("workload")
    assert list(rows["strategy"]) == ["max-autotune", "max-autotune"]
    assert rows["history"].map(len).tolist() == [2, 2]


@pytest.mark.parametrize(
    ("tally", "more", "tone", "text"),
    [
        (Tally(slower=2, faster=1, unchanged=4, undecided=1), {}, "bad", "2 of 8 cases slower since b"),
        (Tally(faster=1, unchanged=4, undecided=3), {}, "good", "1 of 8 cases faster, none slower since b"),
        (Tally(unchanged=4, undecided=3), {}, "good", "None of 7 cases slower since b"),
        (Tally(unchanged=1, undecided=3), {}, "warning", "3 of 4 cases undecided since b"),
        (Tally(unchanged=1, set_aside=3), {}, "warning", "3 of 4 cases set aside, machine since b"),
        (Tally(unchanged=3, failing=1), {"failing": 1}, "bad", "1 case failing since b"),
        (Tally(unchanged=4), {"regressions": 2}, "bad", "2 open regressions, none of 4 cases slower since b"),
        (Tally(), {"failing": 2}, "bad", "2 cases failing"),
        (Tally(), {}, "", "No build to compare a with"),
    ],
)
def test_the_colour_is_that_of_the_sentence(tally: Tally, more: dict[str, int], tone: str, text: str) -> None:
    given = {"failing": 0, "regressions": 0, "build": "a", "since": "b"} | more
    said = headlines.of_overview(tally, **given)
    assert said.tone == tone
    assert said.text == text
    assert len(said.text.split()) <= 12


def test_components_over_time_mark_what_moved_at_each_step(store: Store) -> None:
    """In order of first results, not of versions. What no build has did not move."""
    stack = [
        make_build("2.13.0", driver="570.1", triton="3.6.0", cudnn=None),
        make_build("2.12.0", driver="570.1", triton="3.6.0", cudnn=None),
        make_build("2.12.0", driver="580.2", triton="3.6.0", cudnn=None, packages={"transformers": "6.0"}),
    ]
    trials = [
        make_trial(build=build, run_id=f"run-{day}", started_at=START - timedelta(days=9 - day))
        for day, build in enumerate(stack)
    ]
    page = page_of(store, trials)
    (chart,) = named(flat(page.parts), "overview-components")
    assert isinstance(chart, Chart)
    cells = chart.chart.frames["main"]
    moved = cells[cells["state"] == "moved"]
    of_build = {
        column.removeprefix("torch ").split(" · ")[0]: dict(zip(mine["part"], mine["says"], strict=True))
        for column, mine in moved.groupby("build")
    }
    assert of_build["2.12.0 (driver 570.1)"]["torch"] == "2.13.0 → 2.12.0"
    assert of_build["2.12.0 (driver 580.2)"] == {
        "driver": "570.1 → 580.2",
        "transformers": "5.23.0 → 6.0",
    }
    assert not {"triton", "cudnn"} & set(cells["part"]), "they never moved"
    assert chart.chart.finding == "Components over time: something moved at 2 of 2 steps"


def test_nothing_is_red_where_nothing_can_be_compared(store: Store) -> None:
    """Two builds of which no case is comparable, and one of them has other means."""
    slower = make_trial(build="2.13.0", latency_ns=11 * MS, run_id="new", workload="bert-base")
    alone = make_trial(
        build="2.12.0", run_id="old", workload="resnet-50", started_at=START - timedelta(days=1)
    )
    page = page_of(store, [slower, alone])
    (found,) = named(page.parts, "figures")
    assert isinstance(found, Figures)
    assert {each.tone for each in found.figures} == {""}
    opened(Link(page=Page.OVERVIEW))
