"""The Trial page of an imported result: what its source told, and nothing that it did not."""

from __future__ import annotations

import shlex

import pytest

from compilewatch.dashboard.document.content import Table
from compilewatch.dashboard.document.page import render
from compilewatch.dashboard.links.links import Link, Page, href
from compilewatch.dashboard.pages.trial.one_trial import trial_parts
from compilewatch.dashboard.parts.parts import Lines, flat
from compilewatch.dashboard.reports.freeze import freeze_link
from compilewatch.db.records.trial import ColdStart, Summary
from tests.builders import MS, START, make_imported, make_trial
from tests.dashboard.conftest import Store

COST = ColdStart(until_steady_ns=37_662_211_000, calls_until_steady=0)
STATED = Summary(
    latency_ns=8 * MS,
    control_latency_ns=12 * MS,
    n=30,
    throughput_per_s=125.0,
    metrics={"compression_ratio": 0.912345678, "load_mb": 333.2},
)


@pytest.fixture(autouse=True)
def _stored(store: Store) -> None:
    store([make_imported(trial_id="imp-1", cold_start=COST, summary=STATED)])


def test_a_report_keeps_the_figures_of_the_source() -> None:
    content = freeze_link(href(Link(page=Page.TRIAL, trial="imp-1")), title=None, by="ann", at=START)
    tables = {part.title: part for part in content.sections if isinstance(part, Table)}
    stated = set(tables["Figures of the source"].rows)
    assert {("compression_ratio", "0.912345678"), ("load_mb", "333.2")} <= stated
    assert "only a summary: n = 30." in render(content)


@pytest.mark.parametrize(
    ("workload", "strategy", "is_code"),
    [
        ("mlp", "default", False),
        ("mlp; touch x", "default+submodule:encoder", False),
        ("mlp", "backend:aot_eager", False),
        ("os:system", "eager", True),
        ("mlp", "backend:evil", True),
        ("mlp", "backend:evil+dynamic", True),
    ],
)
def test_no_command_to_copy_names_code_of_a_record(workload: str, strategy: str, is_code: bool) -> None:
    """`compilewatch run` would import the one, and look for the other among all that is installed."""
    trial = make_trial()
    trial = trial.model_copy(
        update={
            "suite": None,
            "workload": trial.workload.model_copy(update={"name": workload}),
            "strategy": trial.strategy.model_copy(update={"name": strategy}),
        }
    )
    safe = [f"compilewatch show {trial.trial_id}", f"compilewatch reproduce {trial.trial_id}"]
    code = [part for part in flat(trial_parts(trial)) if isinstance(part, Lines) and part.code]
    words = [shlex.split(command) for part in code for command in part.lines]
    again = ["compilewatch", "run", "--workload", workload, "--strategy", strategy, "--trials", "1"]
    assert words == [
        *map(str.split, safe),
        *([] if is_code else [again]),
    ]
