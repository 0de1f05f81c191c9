"""Which trials make a side, and how a side is described."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compilewatch.db.judge.compare.sides import (
    Selection,
    VerdictError,
    as_selection,
    as_text,
    changed_components,
    describe_sides,
    in_time_order,
    plain_settings,
    split_sides,
)
from tests.db.judge.frames import trial
from tests.db.metrics.frames import START, trials_frame

OLD, NEW = as_selection("old"), as_selection("new")


def test_a_selection_takes_builds_runs_or_both_at_once():
    rows = [trial(build=build, run_id=run) for build in ("old", "new") for run in ("R1", "R2")]
    trials = trials_frame(rows)
    for selection, chosen in (
        (Selection(name="a", build_ids=("old",)), [True, True, False, False]),
        (Selection(name="a", run_ids=("R2",)), [False, True, False, True]),
        (Selection(name="a", build_ids=("old",), run_ids=("R2", "R3")), [False, True, False, False]),
    ):
        assert selection.mask(trials).tolist() == chosen
    assert as_selection("old") == Selection(name="old", build_ids=("old",))
    assert as_selection(Selection(name="x", run_ids=("R1",))).run_ids == ("R1",)


def test_a_selection_by_nothing_is_refused_with_the_next_step():
    with pytest.raises(VerdictError) as refused:
        Selection(name="x").mask(trials_frame([trial()]))
    assert str(refused.value) == "x names no build and no run. See `compilewatch list builds`."


def test_sides_are_in_time_order_and_without_what_was_cut_short():
    rows = [
        trial(build="new", trial_id="T3", started_at=START),
        trial(build="old", trial_id="T2", started_at=START),
        trial(build="other", trial_id="T0", started_at=START),
        trial(build="old", trial_id="T1", started_at=START.replace(hour=1)),
        trial(build="old", trial_id="T4", status="failed", failure_kind="device_lost"),
        trial(build="old", trial_id="T5", started_at=START, status="failed", failure_kind="crash"),
    ]
    sides = split_sides(trials_frame(rows), OLD, NEW)
    assert sides["trial_id"].tolist() == ["T1", "T2", "T3", "T5"]
    assert sides["side"].tolist() == [0, 0, 1, 0]
    assert sides["side"].dtype == np.int64
    assert sides.index.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("rows", "base", "head", "said"),
    [
        (
            [trial()],
            "old",
            "old",
            "old and old are the same trials. Choose two builds or two runs that differ.",
        ),
        (
            [trial()],
            "old",
            "new",
            "No trial of new is stored. See `compilewatch list builds` and `list runs`.",
        ),
        (
            [trial(build="new")],
            "old",
            "new",
            "No trial of old is stored. See `compilewatch list builds` and `list runs`.",
        ),
        (
            [
                trial(),
                trial(build="new", status="failed", failure_kind="disk_full"),
                trial(build="new", status="failed", failure_kind="cancelled"),
            ],
            "old",
            "new",
            "Every trial of new was cut short by something outside the build. Run it again.",
        ),
    ],
)
def test_what_cannot_be_two_sides_is_refused_in_a_sentence(
    rows: list[dict[str, Any]], base: str, head: str, said: str
):
    with pytest.raises(VerdictError) as refused:
        split_sides(trials_frame(rows), as_selection(base), as_selection(head))
    assert str(refused.value) == said


def test_a_side_tells_its_builds_its_runs_and_every_version_seen():
    rows = [
        trial(build="new", build_id="b2", run_id="R9", driver="580", triton=None),
        trial(build="new", build_id="b1", run_id="R1", driver="570", triton=None),
        trial(build="old", driver="1"),
    ]
    sides = split_sides(trials_frame(rows), Selection(name="head", build_ids=("b1", "b2")), OLD)
    side, old = describe_sides(sides, Selection(name="head", build_ids=("b1", "b2")), OLD)
    assert (side.name, side.build_ids, side.run_ids) == ("head", ("b1", "b2"), ("R9", "R1"))
    assert side.components["driver"] == "570 / 580"
    assert side.components["torch"] == "new"
    assert side.components["triton"] is None
    assert changed_components(old, side) == ("torch", "driver")


def test_each_library_is_a_component_by_its_name():
    sides = split_sides(
        trials_frame(
            [
                trial(build="old", packages={"flash_attn": "2.7", "timm": "1.0", "torch": "2.9"}),
                trial(build="new", packages={"flash_attn": "2.8", "timm": "1.0", "peft": "0.18"}),
                trial(build="new", packages={"flash_attn": "2.8", "timm": "1.0", "peft": "0.18"}),
            ]
        ).drop(columns="torch"),
        OLD,
        NEW,
    )
    base, head = describe_sides(sides, OLD, NEW)
    assert changed_components(base, head) == ("flash_attn",), "nobody recorded which peft the base had"
    told = [(base.components[name], head.components[name]) for name in ("flash_attn", "timm", "peft")]
    assert told == [("2.7", "2.8"), ("1.0", "1.0"), (None, "0.18")]
    assert "torch" not in base.components  # of a component that is none of the libraries they say nothing


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "unknown"),
        (pd.NA, "unknown"),
        (float("nan"), "unknown"),
        (pd.NaT, "unknown"),
        (0, "0"),
        ("", ""),
        ({"b": 1, "a": 2}, '{"a": 2, "b": 1}'),
    ],
)
def test_a_condition_as_text(value: object, text: str):
    assert as_text(value) == text


def test_settings_are_named_with_their_path():
    given = {"a": 1, "b": {"c": 2, "d": {"e": 3}}, "cpu_capability": "AVX2", "f": {"cpu_capability": "x"}}
    assert plain_settings(given) == {"a": 1, "b.c": 2, "b.d.e": 3, "f.cpu_capability": "x"}
    assert plain_settings(None) == {}


def test_sides_have_the_columns_of_the_trials_and_the_side():
    trials = trials_frame([trial(build="old"), trial(build="new")])
    assert split_sides(trials, OLD, NEW).columns.tolist() == [*trials.columns, "side"]


@given(
    seconds=st.lists(st.integers(0, 3), max_size=6),
    ids=st.lists(st.sampled_from("abcdef"), min_size=6, max_size=6, unique=True),
)
def test_trials_that_stand_in_time_order_stay_and_others_are_sorted(seconds: list[int], ids: list[str]):
    trials = pd.DataFrame(
        {
            "trial_id": pd.Series(ids[: len(seconds)], dtype="str"),
            "started_at": [START + timedelta(seconds=each) for each in seconds],
        }
    ).astype({"started_at": "datetime64[us, UTC]"})
    expected = trials.sort_values(["started_at", "trial_id"])
    found = in_time_order(trials)
    pd.testing.assert_frame_equal(found, expected)
    assert (found is trials) == (expected.index.is_monotonic_increasing)
