"""The list of models: a row each with what its lead asks, and a way to the one."""

from __future__ import annotations

from datetime import timedelta

import pytest

from compilewatch.dashboard.links.links import Link, Page
from compilewatch.dashboard.pages.workload import content
from compilewatch.dashboard.parts.parts import Chart, PageContent, Table, named
from compilewatch.dashboard.read.data import read_choices
from compilewatch.db import units
from compilewatch.db.records.trial import CacheState, Trial
from tests.builders import MS, SECOND, START, make_cold_start, make_history, make_strategy, make_trial
from tests.dashboard.conftest import OpenPage, Store, opened, selector, texts


def page_of(**link: object) -> PageContent:
    choices = read_choices()
    build = list(choices.builds)[-1]
    return content.page(Link(page=Page.WORKLOAD, machine=choices.newest_machine, build=build, **link))  # type: ignore[arg-type]


def table_of(page: PageContent) -> Table:
    (found,) = named(page.parts, "models")
    assert isinstance(found, Table)
    return found


def history() -> list[Trial]:
    def latency_ns(workload: str, strategy: str, run: int) -> float:
        share = {"eager": 1.0, "default": 0.5, "max-autotune": 0.8}[strategy]
        return 10 * MS * (2 - share if workload == "mlp" else share) * (1 + run / 10)

    return make_history(
        workloads=("bert-base", "mlp"),
        strategies=("eager", "default", "max-autotune"),
        builds=("2.12.0", "2.13.0", "2.13.0"),
        latency_ns=latency_ns,
        trials_per_case=5,
    )


def test_a_row_says_of_a_model_what_is_best_and_from_when_it_pays(store: Store) -> None:
    store(history())
    page = page_of()
    rows = table_of(page).frame.set_index("workload")
    assert rows["best"].to_dict() == {"bert-base": "default", "mlp": "eager"}
    assert rows["speedup"].loc["bert-base"] == pytest.approx(2.0, rel=0.05)
    assert rows["pays"].loc["mlp"] == "never"
    number, ends = rows["pays"].loc["bert-base"].removeprefix("about ").split(" ", 1)
    low, high = (float(end.replace(",", "")) for end in ends.strip("[]").split(", "))
    assert low <= float(number.replace(",", "")) <= high
    assert page.headline.startswith("Compiled is shown to be faster on 1 of 2 models, at most ")
    assert page.headline.endswith("on bert-base with default")
    (chart,) = named(page.parts, "models-speedups")
    assert isinstance(chart, Chart)
    assert len(chart.chart.frames["main"]) == 4


def test_its_line_has_the_last_twelve_weeks_alone(store: Store) -> None:
    old = make_history(
        workloads=("bert-base",), builds=("2.13.0",), start=START - timedelta(weeks=20), seed=7
    )
    store([*old, *history()])
    (line,) = table_of(page_of(workload=("bert-base", "mlp"))).frame["weeks"][:1]
    assert line == pytest.approx([5 * MS, 5.5 * MS, 6 * MS], rel=0.05)


def test_cold_and_warm_are_of_the_best_strategy_with_its_largest_phase(store: Store) -> None:
    warm = make_strategy("default").model_copy(update={"name": "default+warm", "cache": CacheState.WARM})
    starts = (("default", 30), (warm, 4))
    store(
        make_trial(
            workload="mlp",
            strategy=strategy,
            run_id="run",
            trial_id=f"{seconds}-{nth}",
            latency_ns=(5 + 0.01 * nth) * MS,
            control_latency_ns=10 * MS,
            cold_start=make_cold_start(5 * MS, total_ns=seconds * SECOND),
        )
        for nth in range(3)
        for strategy, seconds in starts
    )
    (row,) = table_of(page_of()).frame.to_dict("records")
    assert (row["best"], row["cold"], row["warm"]) == ("default", 30 * SECOND, 4 * SECOND)
    assert row["phase"].startswith("unattributed, ")


def test_what_failed_or_is_a_first_look_claims_nothing(store: Store) -> None:
    store([make_trial(failure="compile_error"), make_trial(workload="mlp")])
    page = page_of()
    rows = table_of(page).frame.set_index("workload")
    assert rows["best"].to_dict() == {"bert-base": units.MISSING, "mlp": "no difference shown"}
    assert rows["pays"].loc["mlp"] == "first look"
    assert rows["state"].loc["bert-base"] == "1 failing"
    assert page.headline == "No compiled strategy is shown to be faster than eager on 2 models"


def test_the_page_of_one_is_a_choice_away_and_the_list_too(filled: OpenPage) -> None:
    test = filled(Link(page=Page.WORKLOAD))
    assert list(test.dataframe[0].value["workload"]) == ["bert-base", "elementwise", "lstm-cell", "mlp"]
    selector(test, "focus").select("mlp").run()
    assert "## :" in texts(test)
    assert test.query_params["focus"] in ("mlp", ["mlp"])
    assert "mlp: default is " in texts(test)
    selector(test, "focus").select("").run()
    assert "focus" not in test.query_params
    assert len(test.dataframe[0].value) == 4


@pytest.mark.parametrize("link", [{"workload": ("mlp",)}, {"focus": "mlp"}])
def test_a_link_to_one_model_opens_it(filled: OpenPage, link: dict[str, object]) -> None:
    test = opened(Link(page=Page.WORKLOAD, **link))  # type: ignore[arg-type]
    assert "mlp\\: " in next(each.value for each in test.markdown if each.value.startswith("## :"))
    assert selector(test, "focus").value == "mlp"
