"""Metrics on what the database gives back: the frame of the queries is the frame the metrics read."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from compilewatch.db.columns.case import CASE_COLUMNS
from compilewatch.db.columns.metrics import POINT_COLUMNS
from compilewatch.db.engine.session import open_database
from compilewatch.db.metrics.break_even import FIRST_LOOK
from compilewatch.db.metrics.case_modes import choose_modes
from compilewatch.db.metrics.cases import summarize_cases
from compilewatch.db.metrics.trend import series_points
from compilewatch.db.queries.trials import COLUMNS, trials_frame
from compilewatch.db.store.trials import save_trials
from tests.builders import MS, SECOND, make_history, make_imported, make_trial
from tests.db.metrics.frames import TRIAL_TYPES


@pytest.fixture
def stored(tmp_path: Path) -> pd.DataFrame:
    database = open_database(f"sqlite:///{tmp_path}/trials.db", migrate=True)
    exact = make_trial(
        workload="mlp",
        samples_ns=[6 * MS, 7 * MS, 100 * MS],
        control_samples_ns=[13 * MS, 14 * MS, 15 * MS],
        compile_ns=7 * SECOND,
        latency_ns=7 * MS,
    )
    history = make_history(failures=[("resnet-50", "default", 2)])
    save_trials(database, [exact, make_imported(workload="elementwise"), *history])
    frame = trials_frame(database)
    database.close()
    return frame


def test_the_builder_of_these_tests_has_the_columns_of_the_queries(stored: pd.DataFrame) -> None:
    assert set(TRIAL_TYPES) == set(COLUMNS) == set(stored.columns)


def test_a_stored_trial_gives_the_numbers_of_its_samples(stored: pd.DataFrame) -> None:
    cases = summarize_cases(stored)
    assert dict(cases.dtypes.astype(str)) == CASE_COLUMNS
    row = cases[cases["workload"] == "mlp"].iloc[0]
    assert (row["latency_ns"], row["control_latency_ns"], row["speedup"]) == (7 * MS, 14 * MS, 2)
    assert row["interval_method"] == "none"
    # until steady beyond as many steady calls, 7 s, repaid by 7 ms a step
    assert row["compile_cost_ns"] == pytest.approx(7 * SECOND)
    assert (row["break_even"], row["break_even_reason"]) == ("unknown", FIRST_LOOK)
    points = series_points(stored)
    point = points[points["workload"] == "mlp"].iloc[0]
    assert (point["break_even"], point["break_even_steps"]) == ("steps", 1000)


def test_an_imported_summary_has_its_speedup_and_no_break_even(stored: pd.DataFrame) -> None:
    cases = summarize_cases(stored)
    row = cases[cases["workload"] == "elementwise"].iloc[0]
    assert (row["source_kind"], row["speedup"], row["break_even"]) == ("imported", 1.5, "unknown")


def test_a_stored_history_is_one_point_per_run_and_a_choice_per_workload(stored: pd.DataFrame) -> None:
    history = stored[stored["workload"].isin(["bert-base", "resnet-50"])]
    points = series_points(history)
    assert dict(points.dtypes.astype(str)) == POINT_COLUMNS
    assert len(points) == 3 * 2 * 2
    failed = points[points["status"] == "failed"]
    assert failed[["workload", "strategy"]].values.tolist() == [["resnet-50", "default"]]
    chosen = choose_modes(summarize_cases(history), steps=10**6)
    assert (chosen["strategy"] == "eager").sum() == 1
    assert len(chosen) == 6
