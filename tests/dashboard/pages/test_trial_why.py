"""The Trial page explains a step and says where its trace lies, without serving it."""

from __future__ import annotations

from pathlib import Path

import pytest

import compilewatch.dashboard.pages.guide
from compilewatch.dashboard.links.links import Link, Page
from compilewatch.db.records.trial import CacheCounters, CompilerFacts
from tests.builders import make_device_state, make_machine, make_trial
from tests.dashboard.conftest import DATABASE, OpenPage, Store, opened, texts
from tests.explained_parts import make_profile, make_sampling, make_trace

GUIDE = (Path(compilewatch.dashboard.pages.guide.__file__).parent / "guide.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def explained_url(store_once: Store) -> str:
    explained = {"profile": make_profile(), "trace": make_trace(), "sampling": make_sampling()}
    eager = {"profile": make_profile(control=None), "trace": make_trace(report=None)}
    cache = CacheCounters(fx_graph_hits=0, fx_graph_misses=1, fx_graph_bypasses=2, aot_autograd_hits=0)
    return store_once(
        [
            make_trial(trial_id="T1", **explained),
            make_trial(trial_id="T2", strategy="eager", **eager),
            make_trial(trial_id="T3", compiler=CompilerFacts(cache=cache)),
        ]
    )


@pytest.fixture
def page(explained_url: str, monkeypatch: pytest.MonkeyPatch) -> OpenPage:
    monkeypatch.setenv(DATABASE, explained_url)
    return opened


def test_the_line_of_context_of_a_trial_is_of_its_machine(store: Store) -> None:
    store(
        [
            make_trial(trial_id="old", machine=make_machine("box-1", device_name="NVIDIA L4"), run_id="one"),
            *(make_trial(machine="box-2", build=build, run_id=build) for build in ("2.12.1", "2.13.0")),
        ]
    )
    shown = texts(opened(Link(page=Page.TRIAL, trial="old")))
    assert "box-1 (NVIDIA L4) · last run" in shown
    assert "box-2" not in shown


def test_where_every_trial_was_cancelled_no_filter_is_to_blame(store: Store) -> None:
    store([make_trial(failure="cancelled", strategy=name) for name in ("eager", "default")])
    for page in (Page.OVERVIEW, Page.WORKLOAD, Page.MODES):
        shown = texts(opened(Link(page=page)))
        assert "Every trial here was cancelled." in shown
        assert "Widen" not in shown


def test_a_cancelled_trial_has_not_failed(store: Store) -> None:
    stopped = make_trial(trial_id="stopped", failure="cancelled", run_id="run")
    wrong = make_trial(trial_id="wrong", failure="crash", run_id="run")
    store([make_trial(run_id="run"), stopped, wrong])
    listed = opened(Link(page=Page.TRIAL))
    assert "3 trials, 1 failed, 1 cancelled" in texts(listed)
    (table,) = (frame.value for frame in listed.dataframe if "why" in frame.value)
    assert dict(zip(table["trial"], table["status"], strict=True))["stopped"] == "cancelled"
    one = texts(opened(Link(page=Page.TRIAL, trial="stopped")))
    assert "Cancelled" in one
    assert "Failed" not in one


def test_a_trace_is_named_and_not_served(page: OpenPage) -> None:
    said = texts(page(Link(page=Page.TRIAL, trial="T1")))
    assert "traces/T1/report/index.html" in said
    assert "On gpu-box-3, below its data directory" in said
    assert "file:" not in said
    assert "](traces" not in said
    assert "tlparse was not installed" in texts(page(Link(page=Page.TRIAL, trial="T2")))


def test_a_clock_that_was_limited_is_said_and_never_drawn_as_calm(store: Store) -> None:
    """A power cap is normal and no reason for doubt; the page says it all the same, and the Guide agrees."""
    store([make_trial(trial_id="T9", device_state=make_device_state(throttle_reasons=["sw_power_cap"]))])
    test = opened(Link(page=Page.TRIAL, trial="T9"))
    assert "clock limited" in texts(test)
    tables = "\n".join(table.value.to_string() for table in test.table).replace("\\", "")
    assert "power cap (sw_power_cap, normal under load)" in tables
    assert "such a trial counts, and its page says that its clock was limited" in " ".join(GUIDE.split())
