"""The page of cold starts over more cases than a chart has room for."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pandas as pd
import pytest

from compilewatch.dashboard.charts.cold_start import MOST_CASES, drawn, frame, seconds_text
from compilewatch.dashboard.links.links import Link, Page
from compilewatch.dashboard.pages.cold_start import content as cold_start
from compilewatch.dashboard.parts.parts import Chart, Table
from compilewatch.dashboard.read.data import read_choices
from compilewatch.dashboard.read.shaping import with_phases
from compilewatch.db.engine.session import open_database
from compilewatch.db.interchange.read.importing import import_paths
from compilewatch.db.queries.cases.cold_start import cold_starts
from compilewatch.db.queries.trials import trials_frame
from compilewatch.db.records.trial import ColdStart, NumericsStatus
from tests.builders import make_history, make_imported, make_numerics, make_trial
from tests.dashboard.conftest import DATABASE, Store, opened, texts
from tests.db.interchange.trace_logs import whole_recording

STRATEGIES = ("eager", "default", "reduce-overhead", "max-autotune")
WORKLOADS = tuple(f"model-{number}" for number in range(7))
CASES = len(STRATEGIES) * len(WORKLOADS)


@pytest.fixture(scope="module")
def many_cases_url(store_once: Store) -> str:
    trials = make_history(workloads=WORKLOADS, strategies=STRATEGIES, builds=("2.13.0",))
    return store_once([*trials, make_trial(workload="slow-start", compile_ns=90_000_000_000)])


@pytest.fixture
def many_cases(many_cases_url: str, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv(DATABASE, many_cases_url)
    return many_cases_url


def test_the_slowest_cases_have_bars_and_the_table_has_all(many_cases: str) -> None:
    page = opened(Link(page=Page.COLD_START))
    assert f"The {MOST_CASES} slowest of {CASES + 1} cases. The table has all" in texts(page)
    (table,) = page.dataframe
    assert len(table.value) == CASES + 1
    shown = json.loads(table.proto.columns)
    assert [shown[name]["label"] for name in ("first", "cost")] == ["First result (s)", "Compile cost (s)"]


def test_those_that_take_longest_come_first_with_all_their_phases(many_cases: str) -> None:
    with open_database(many_cases, read_only=True) as database:
        trials = trials_frame(database)
        starts = with_phases(trials, cold_starts(database, list(trials["trial_id"])))
        every = frame(starts, dict(zip(trials["workload_id"], trials["workload"], strict=True)))
    found = drawn(every)
    sums = every.groupby("case")["seconds"].sum()
    shown = found.rows.groupby("case")["seconds"].sum()[list(found.cases)]
    assert len(found.cases) == MOST_CASES
    assert found.cases[0] == "slow-start · default"
    assert list(shown) == sorted(shown, reverse=True)
    assert shown.min() >= sums.drop(shown.index).max()
    assert shown.to_dict() == pytest.approx(sums[shown.index].to_dict())


def test_a_case_that_tells_no_first_call_has_no_time_to_first_result(store: Store) -> None:
    store([make_imported(cold_start=ColdStart(build_model_ns=15_600_000_000))])
    page = opened(Link(page=Page.COLD_START))
    assert "needs 15.6 s" not in texts(page)
    assert "No time to first result is known: no case tells its first call" in texts(page)
    store([make_trial(workload="measured", compile_ns=2_000_000_000)])
    assert re.search(
        r"measured · default needs \S+ s to its first result", texts(opened(Link(page=Page.COLD_START)))
    )


def test_a_wrong_result_has_neither_a_bar_nor_a_number(store: Store) -> None:
    wrong = make_trial(workload="mlp", strategy="max-autotune", numerics=make_numerics(NumericsStatus.FAIL))
    right = make_trial(workload="mlp", trial_id="right", run_id="right")
    store([wrong, right])
    machine = read_choices().newest_machine
    page = cold_start.page(Link(page=Page.COLD_START, machine=machine))
    (chart,) = (part for part in page.parts if isinstance(part, Chart))
    (table,) = (part for part in page.parts if isinstance(part, Table))
    first = dict(zip(table.frame["strategy"], table.frame["first"], strict=True))
    assert pd.isna(first["max-autotune"])
    assert set(chart.chart.frames["main"]["strategy"]) == {right.strategy.name}
    assert chart.chart.frames["totals"]["text"].tolist() == [seconds_text(first[right.strategy.name])]


def test_production_stands_beside_the_benchmark(store: Store, tmp_path: Path) -> None:
    folder = tmp_path / "jobs"
    folder.mkdir()
    for rank, begin_s in ((0, 0.0), (1, 0.5), (0, 900.0), (1, 900.5)):
        recording = whole_recording(rank=rank, begin_s=begin_s, compile_s=8 if begin_s < 1 else 6)
        (folder / f"compilewatch_job_{rank}_{begin_s}.jsonl").write_text(recording)
    with open_database(store(make_history(workloads=("bert",), strategies=("eager", "default")))) as database:
        assert import_paths(database, [folder]).new == 4
    page = opened(Link(page=Page.COLD_START))
    benchmark, production = (table.value for table in page.dataframe)
    assert set(benchmark["workload"]) == {"bert"}
    # The newest of two executions: 16 s to the first step, 6 of them compiling, in two processes.
    (row,) = production.to_dict("records")
    assert (row["workload"], row["machine"], row["processes"]) == ("ranker", "gpu-box-3", 2)
    assert (row["first"], row["cost"]) == (16.0, 6.0)
