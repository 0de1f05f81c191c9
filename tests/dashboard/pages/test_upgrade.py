"""Upgrade: what the judge says about two builds is what the page shows, and its selectors are in the link."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from streamlit.testing.v1 import AppTest

from compilewatch.dashboard.links.links import Link, Page
from compilewatch.dashboard.parts.verdict_words import SIDES_HELP
from compilewatch.db.judge.policy import Policy
from compilewatch.db.records.evidence import HeldMemory, SavedForBackward
from compilewatch.db.records.trial import Trial
from compilewatch.db.records.vocabulary import Metric, Verdict
from tests.builders import MS, START, make_build, make_history
from tests.dashboard.conftest import DATABASE, OpenPage, Store, build_ids, machine_ids, opened, texts

HOSTILE = "![x](http://evil.example/a.png) <b>*bold*</b> :smile: $x$"


@pytest.fixture(scope="module")
def upgrade_url(store_once: Store) -> str:
    """One run: to 2.13 bert-base default is 12 % slower, mlp max-autotune fails, resnet-50 default goes."""

    def latency_ns(workload: str, strategy: str, run: int) -> float:
        slower = 1.12 if (workload, strategy, run) == ("bert-base", "default", 1) else 1.0
        return 10 * MS * {"eager": 1.0, "default": 0.7, "max-autotune": 0.6}[strategy] * slower

    trials = make_history(
        workloads=("bert-base", "mlp", "resnet-50"),
        strategies=("eager", "default", "max-autotune"),
        builds=(make_build("2.12.0", packages={"transformers": HOSTILE}), "2.13.0"),
        latency_ns=latency_ns,
        failures=[("mlp", "max-autotune", 1)],
        trials_per_case=6,
        start=START - timedelta(days=3),
        every=timedelta(seconds=30),
    )
    gone = ("resnet-50", "default", "2.13.0")
    kept = (t for t in trials if (t.workload.name, t.strategy.name, t.build.torch) != gone)
    return store_once(_saving(trial).model_copy(update={"run_id": "by-turns"}) for trial in kept)


def _saving(trial: Trial) -> Trial:
    """bert-base default saves a tensor more on 2.13."""
    if (trial.workload.name, trial.strategy.name) != ("bert-base", "default") or trial.memory is None:
        return trial
    held = [HeldMemory(tensor="64x768 float32", place="model.py:12", count=2, size_bytes=393_216)]
    if trial.build.torch == "2.13.0":
        held.append(HeldMemory(tensor="8x8 float32", place="model.py:14", size_bytes=256))
    counted = {"count": len(held) + 1, "size_bytes": sum(each.size_bytes for each in held)}
    saved = SavedForBackward(**counted, largest=held)
    memory = trial.memory.model_copy(update={"saved": saved, "control_saved": saved})
    return trial.model_copy(update={"memory": memory})


@pytest.fixture
def upgrade(upgrade_url: str, monkeypatch: pytest.MonkeyPatch) -> OpenPage:
    monkeypatch.setenv(DATABASE, upgrade_url)
    return opened


def _points(test: AppTest) -> dict[tuple[str, str], dict[str, Any]]:
    """The marks of the forest plot."""
    (main,) = (dataset for dataset in test.get("vega_lite_chart")[0].proto.datasets if dataset.name == "main")
    rows = pa.ipc.open_stream(main.data.data).read_all().to_pylist()
    return {(row["workload"], row["strategy"]): row for row in rows}


def _rows(test: AppTest) -> dict[tuple[str, str], dict[str, Any]]:
    """The table below it."""
    table = next(each.value for each in test.dataframe if "eager_ratio" in each.value.columns)
    return {(row["workload"], row["strategy"]): row for row in table.to_dict("records")}


def test_without_builds_asked_for_the_newest_is_set_against_the_one_before(
    upgrade: OpenPage, upgrade_url: str
) -> None:
    ids = build_ids(upgrade_url)
    link = next(code.value for code in upgrade(Link(page=Page.UPGRADE)).code if "upgrade?" in code.value)
    assert f"base={ids['2.12.0']}&" in link
    assert f"head={ids['2.13.0']}&" in link


def test_a_verdict_is_a_word_and_a_mark_and_not_only_a_colour(upgrade: OpenPage) -> None:
    test = upgrade(Link(page=Page.UPGRADE, metric="latency"))
    slower = _points(test)["bert-base", "default"]
    assert slower["word"] == "✗ regressed"
    assert slower["low"] < slower["change"] < slower["high"]
    assert slower["change"] == pytest.approx(0.12, abs=0.01)
    assert slower["margin_high"] == Policy().for_case("bert-base", "default", Metric.LATENCY).unchanged_margin
    assert set(_rows(test)) == {("bert-base", "default"), ("mlp", "max-autotune")}, "what moved comes first"
    still = _rows(upgrade(Link(page=Page.UPGRADE, metric="latency", group=("unchanged",))))
    assert still["mlp", "default"]["verdict"] == "= unchanged"
    assert ("bert-base", "default") not in still


def test_pills_count_what_the_tally_counts_and_choose_what_stands_below(upgrade: OpenPage) -> None:
    test = upgrade(Link(page=Page.UPGRADE))
    (pills,) = (each for each in test.get("button_group") if each.label == "Cases")
    offered = dict(zip(("slower", "failing", "faster", "undecided", "unchanged"), pills.options, strict=True))
    assert [offered[each] for each in ("slower", "failing", "faster")] == [
        "Slower 1",
        "Failing 1",
        "Faster 0",
    ]
    assert sum(int(each.split()[-1]) for each in pills.options) == 8, "the tally compares 8 cases"
    assert list(pills.value) == ["slower", "failing"]
    pills.set_value(["faster"]).run()
    assert test.query_params["group"] in ("faster", ["faster"])
    assert "None of the compared cases is faster." in texts(test)
    assert not [each for each in test.dataframe if each.key == "upgrade-cases"]


def test_the_button_of_a_metric_says_how_many_moved_as_the_page_of_that_metric_counts_them(
    upgrade: OpenPage,
) -> None:
    (buttons,) = (
        each for each in upgrade(Link(page=Page.UPGRADE)).get("button_group") if each.label == "Metric"
    )
    moved = {name: tally for name, _, tally in (each.partition(": ") for each in buttons.options)}
    assert (moved["Latency"], moved["Speedup"]) == ("1 slower", "1 worse")
    assert moved["Peak memory"] == ""
    for metric, tally in (("speedup", "1 worse"), ("peak_memory", "")):
        test = upgrade(Link(page=Page.UPGRADE, metric=metric))
        (pills,) = (each for each in test.get("button_group") if each.label == "Cases")
        of_this_metric = f"Worse in {metric.replace('_', ' ')} {tally.partition(' ')[0] or 0}"
        assert of_this_metric in pills.options


def test_a_model_with_several_cases_is_one_row_until_it_is_chosen(upgrade: OpenPage) -> None:
    unchosen = _points(upgrade(Link(page=Page.UPGRADE, group=("unchanged",))))
    assert [row["cases"] for row in unchosen.values() if row["workload"] == "bert-base"] == [2]
    chosen = Link(page=Page.UPGRADE, group=("unchanged",), focus="bert-base", focus_strategy="max-autotune")
    opened_rows = [row for key, row in _points(upgrade(chosen)).items() if key[0] == "bert-base"]
    assert {(row["strategy"], row["kind"]) for row in opened_rows} == {
        ("eager", "case"),
        ("max-autotune", "case"),
    }


def test_a_change_is_a_line_with_the_worst_and_the_median(upgrade: OpenPage) -> None:
    charts = upgrade(Link(page=Page.UPGRADE)).get("vega_lite_chart")
    (heads,) = (each for each in charts[0].proto.datasets if each.name == "heads")
    said = [row["text"] for row in pa.ipc.open_stream(heads.data.data).read_all().to_pylist()]
    assert re.fullmatch(r"1 model slower, worst \+1\d\.\d %, 1 case", said[0])
    assert said[1:] == ["1 model failing, 1 case"]


def test_failing_and_missing_cases_have_a_row_and_a_reason(upgrade: OpenPage) -> None:
    test = upgrade(Link(page=Page.UPGRADE))
    failing = _rows(test)["mlp", "max-autotune"]
    assert failing["verdict"] == "✗ regressed"
    assert pd.isna(failing["change"])
    assert failing["reason"].startswith("Passed on the base side, fails now")
    assert (
        "1 case missing: ran on the base side, is missing on the head side: resnet-50 with default"
        in texts(test)
    )


def test_of_many_cases_left_out_every_one_is_listed(store: Store) -> None:
    names = tuple(f"model-{number}" for number in range(8))
    trials = make_history(workloads=names, strategies=("eager", "default"), builds=("2.12.0", "2.13.0"))
    gone = {*names[1:]}
    store(t for t in trials if t.build.torch == "2.12.0" or t.workload.name not in gone)
    test = opened(Link(page=Page.UPGRADE))
    assert "and 9 more" in texts(test)
    table = next(
        each.value
        for each in test.dataframe
        if list(each.value.columns) == ["workload", "strategy", "verdict", "reason"]
    )
    assert set(zip(table["workload"], table["strategy"], strict=True)) == {
        (name, strategy) for name in gone for strategy in ("eager", "default")
    }
    assert set(table["verdict"]) == {Verdict.MISSING.value}


def test_the_chosen_case_shows_the_trials_of_both_sides_and_who_moved(upgrade: OpenPage) -> None:
    link = Link(page=Page.UPGRADE, focus="bert-base", focus_strategy="default", metric="speedup")
    test = upgrade(link)
    strip = next(d for d in test.get("vega_lite_chart")[1].proto.datasets if d.name == "main")
    rows = pa.ipc.open_stream(strip.data.data).read_all().to_pylist()
    lanes = {
        lane: sorted(row["value"] for row in rows if row["lane"] == lane)
        for lane in {r["lane"] for r in rows}
    }
    assert {lane: len(values) for lane, values in lanes.items()} == {
        f"{side} · {name}": 6 for side in ("base", "head") for name in ("default", "eager")
    }
    helps = " ".join(each.proto.help for each in test.markdown).replace("\\", "")
    assert "the upright line the geometric mean of the trials" in helps
    table = next(each for each in test.dataframe if "metric" in each.value.columns)
    shown = json.loads(table.proto.columns)
    assert {shown[side]["help"] for side in ("base", "head")} == {SIDES_HELP}
    assert max(lanes["base · default"]) < 7.3 < min(lanes["head · default"])
    numbers = table.value.set_index("metric")
    assert numbers.loc["Latency", "moved"] == "compiled"
    assert numbers.loc["Latency", "reason"].endswith("eager did not move.")
    assert numbers.loc["Speedup", "verdict"] == "✗ regressed"
    assert " to " in numbers.loc["Speedup", "interval"]


def test_the_series_of_a_chosen_case_marks_each_judged_step_with_its_size(upgrade: OpenPage) -> None:
    link = Link(page=Page.UPGRADE, focus="bert-base", focus_strategy="default", metric="latency")
    charts = upgrade(link).get("vega_lite_chart")
    series = next(each for each in charts if each.proto.alt.startswith("Latency of bert-base"))
    changes = next(each for each in series.proto.datasets if each.name == "changes")
    (mark,) = pa.ipc.open_stream(changes.data.data).read_all().to_pylist()
    assert re.fullmatch(r"▲ \+1\d\.\d %, worse", mark["label"])


def test_a_chosen_case_has_both_builds_side_by_side(upgrade: OpenPage) -> None:
    link = Link(page=Page.UPGRADE, focus="bert-base", focus_strategy="default", metric="speedup")
    table = next(each.value for each in upgrade(link).dataframe if "of" in each.value)
    assert list(table.columns) == ["what", "change", "base", "head", "of"]
    assert set(table["of"]) >= {"Cold start", "Memory", "Compiler"}
    rows = table.set_index("what")
    assert rows.loc["Graph breaks", "base"] == rows.loc["Graph breaks", "head"] == "1"
    assert rows.loc["import torch", "base"].endswith(" s")
    assert rows.loc["Peak memory", "head"].endswith("iB")
    saved = rows.loc["Saved for backward (2 → 3 tensors)"]
    assert (saved["base"], saved["head"]) == ("384 KiB", "384 KiB")
    assert tuple(rows.loc["8x8 float32 at model.py:14", ["base", "head"]]) == ("0 B", "256 B")
    assert tuple(rows.loc["2 x 64x768 float32 at model.py:12", ["base", "head"]]) == ("384 KiB", "384 KiB")


def test_a_chosen_case_that_was_left_out_says_why(upgrade: OpenPage) -> None:
    test = upgrade(Link(page=Page.UPGRADE, focus="resnet-50", focus_strategy="default"))
    assert "resnet-50 with default: left out of the comparison, missing" in texts(test)
    gone = upgrade(Link(page=Page.UPGRADE, focus="nobody", focus_strategy="default"))
    assert "nobody with default is no case of this comparison" in texts(gone)


def test_names_from_outside_stay_text(upgrade: OpenPage) -> None:
    test = upgrade(Link(page=Page.UPGRADE))
    environment = next(e.value for e in test.dataframe if "part" in e.value.columns).set_index("part")
    assert environment.loc["transformers", "base"] == HOSTILE
    assert not any("](http" in str(m.value) for m in (*test.markdown, *test.caption, *test.info))


def test_one_build_is_an_empty_state_that_says_what_to_do(filled: OpenPage, filled_url: str) -> None:
    test = filled(Link(page=Page.UPGRADE, machine=machine_ids(filled_url)["cpu-box"]))
    assert "only one build was measured on cpu-box" in texts(test)
    assert not test.get("vega_lite_chart")


def test_the_same_build_on_both_sides_is_a_sentence(upgrade: OpenPage, upgrade_url: str) -> None:
    build = build_ids(upgrade_url)["2.13.0"]
    test = upgrade(Link(page=Page.UPGRADE, base=build, head=build))
    assert "are the same trials" in texts(test)


def test_copy_as_issue_is_one_text_on_upgrade_and_trial(upgrade: OpenPage) -> None:
    def issue(link: Link) -> str:
        (text,) = (each.value for each in upgrade(link).code if each.value.startswith("### "))
        return str(text)

    text = issue(Link(page=Page.UPGRADE, focus="bert-base", focus_strategy="default"))
    assert "torch 2.12.0 to 2.13.0" in text
    command = re.search(r"compilewatch reproduce (\S+) --issue --base \S+", text)
    assert command is not None
    assert issue(Link(page=Page.TRIAL, trial=command[1])) == text
