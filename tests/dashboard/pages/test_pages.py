"""Every page on a filled and on an empty database."""

from __future__ import annotations

import re

import pyarrow as pa
import pytest

from compilewatch.dashboard.links.links import PAGES, SELECTORS, Link, Page, keys_of, read_url
from compilewatch.dashboard.read.database import VARIABLE, InForce
from compilewatch.db.judge.policy import Policy
from compilewatch.db.records.trial import CacheState, Task
from tests.builders import make_history, make_strategy, make_trial
from tests.dashboard.conftest import OpenPage, Store, machine_ids, opened, selector, texts

DATA_PAGES = [page for page in Page if page is not Page.GUIDE]


@pytest.mark.parametrize("page", list(Page))
def test_every_page_draws_without_an_error(filled: OpenPage, page: Page) -> None:
    test = filled(Link(page=page))
    assert [element.value for element in test.error] == []
    assert [element.value for element in test.warning] == []


@pytest.mark.parametrize("page", DATA_PAGES)
def test_an_empty_database_says_what_to_do_next(empty: OpenPage, page: Page) -> None:
    test = empty(Link(page=page))
    assert "Nothing has been measured yet" in texts(test)
    first, *others = [code.value for code in test.code]
    assert first == "compilewatch run --suite smoke"
    (folded,) = (each for each in test.expander if each.label == "Other ways to begin")
    assert [code.value for code in folded.code] == others[: len(folded.code)]
    assert {"compilewatch demo", "compilewatch import results.jsonl"} <= set(others)
    assert not test.get("vega_lite_chart")


@pytest.mark.parametrize("page", list(Page))
def test_where_everything_failed_every_page_says_so_without_an_error(store: Store, page: Page) -> None:
    store(make_trial(failure="workload_error", run_id=f"r{run}") for run in range(2))
    focus = {"focus": "mlp"} if page in SELECTORS["focus"] else {}
    for link in (Link(page=page), Link(page=page, **focus)):
        test = opened(link)
        assert [element.value for element in test.error] == []
        assert "Nothing has been measured yet" not in texts(test)


@pytest.mark.parametrize("page", [page for page in DATA_PAGES if "task" in keys_of(page)])
def test_filters_that_match_nothing_say_so(filled: OpenPage, page: Page) -> None:
    test = filled(Link(page=page, task=(Task.TRAINING,), workload=("elementwise",)))
    assert "fits these filters" in texts(test) or "under these filters" in texts(test)
    assert not test.get("vega_lite_chart")


def test_a_machine_and_a_build_can_be_asked_for_by_name(filled: OpenPage, filled_url: str) -> None:
    test = filled(Link(page=Page.MODES, machine="cpu-box"))
    assert not test.warning
    assert f"machine={machine_ids(filled_url)['cpu-box']}" in next(code.value for code in test.code)
    assert not filled(Link(page=Page.MODES, build="torch 2.11.0")).warning


def test_overview_says_what_the_newest_build_changed(filled: OpenPage) -> None:
    test = filled(Link())
    changed = next(table.value for table in test.table if "torch" in table.value.index)
    said = {name: text.replace("\\", "") for name, text in changed[changed.columns[0]].items()}
    assert said["torch"] == "2.12.0 → 2.13.0"
    assert said["driver"] == "570.86.15 → 580.159.03"
    assert said["cuda, triton"] == "same"
    assert "Several at once: their effects cannot be told apart." in texts(test)


def _datasets(test, number: int) -> dict[str, list[dict]]:
    chart = test.get("vega_lite_chart")[number]
    return {
        dataset.name: pa.ipc.open_stream(dataset.data.data).read_all().to_pylist()
        for dataset in chart.proto.datasets
    }


def test_break_even_plan_follows_steps_restarts_and_price(filled: OpenPage) -> None:
    def money(**plan: float) -> dict[str, str]:
        test = filled(Link(page=Page.BREAK_EVEN, focus="bert-base", **plan))
        said = [element.value for element in test.markdown]
        name = said[said.index(":small[Fastest overall]") + 1].lstrip("# ")
        return {"Fastest overall": name, **{metric.label: metric.value for metric in test.metric}}

    few, many = money(steps=1), money(steps=1_000_000)
    assert few["Fastest overall"] == "eager"
    assert many["Fastest overall"] in {"default", "max\\-autotune"}
    dearer = money(steps=1_000_000, price=200.0)
    cheap = float(many["Money saved per day"].replace("\\", "").lstrip("$"))
    assert float(dearer["Money saved per day"].replace("\\", "").lstrip("$")) == pytest.approx(
        100 * cheap, rel=0.01
    )
    again = money(steps=1_000_000, restarts=9)
    assert float(again["Money saved per day"].replace("\\", "").lstrip("$")) == pytest.approx(
        10 * cheap, rel=0.01
    )


def test_trends_marks_build_changes_and_flags_confounded_ones(filled: OpenPage) -> None:
    events = _datasets(filled(Link(page=Page.WORKLOAD, focus="bert-base")), 0)["events"]
    assert [event["cause"] for event in events] == ["confounded", "confounded"]
    assert "driver 580.159.03 → 570.86.15" in events[0]["detail"]


def test_a_run_without_trials_is_named(filled: OpenPage) -> None:
    assert "No trial of run nope fits these filters." in texts(filled(Link(page=Page.TRIAL, run="nope")))


def test_unknown_trial_is_a_sentence_and_the_list(filled: OpenPage) -> None:
    test = filled(Link(page=Page.TRIAL, trial="nobody"))
    assert "There is no trial nobody." in test.warning[0].value.replace("\\", "")
    assert len(test.dataframe) == 1


def test_only_measured_cache_states_are_offered_and_stay_so_once_chosen(store: Store) -> None:
    warm = make_strategy("default").model_copy(update={"name": "default+warm", "cache": CacheState.WARM})
    cold = make_history(workloads=("mlp",), builds=("2.13.0",))
    later = [
        trial.model_copy(update={"trial_id": f"{trial.trial_id}w", "strategy": warm})
        for trial in cold
        if trial.strategy.name == "default"
    ]
    store([*cold, *later])
    for page in (Page.BREAK_EVEN, Page.COLD_START):
        for chosen in ((), ("warm",)):
            test = opened(Link(page=page, cache=chosen))
            assert selector(test, "cache").options == ["cold", "warm"]


def test_guide_lists_the_policy_in_force(filled: OpenPage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, InForce(policy=Policy(minimum_trials=4)).model_dump_json())
    page = filled(Link(page=Page.GUIDE))
    (table,) = page.dataframe
    values = dict(zip(table.value["constant"], table.value["value"], strict=True))
    assert (values["minimum_trials"], values["history.p_value"]) == ("4", "0.01")


def test_guide_says_which_page_answers_a_question(filled: OpenPage) -> None:
    text = " ".join(each.value for each in filled(Link(page=Page.GUIDE)).markdown)
    asked = re.findall(r"\| [^|]+\? \| \[([\w -]+)\]\(([^)]+)\) \| `compilewatch ", text)
    assert len(asked) > 20
    for title, address in asked:
        link, problems = read_url(address.removesuffix("."))
        assert (PAGES[link.page].title, problems) == (title, ())
