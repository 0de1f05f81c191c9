"""A trial that was cancelled is no result: it makes no case, no failure and no point."""

from __future__ import annotations

import pandas as pd

from compilewatch.db.engine.session import Database
from compilewatch.db.metrics.cases import case_values, summarize_cases
from compilewatch.db.metrics.trend import series_points
from compilewatch.db.queries.trials import trials_frame
from compilewatch.db.records.trial import FailureKind
from compilewatch.db.store.trials import save_trials
from tests.builders import make_trial, make_workload


def stored(database: Database) -> pd.DataFrame:
    """One case measured, one that failed, each cancelled then, and one that was only cancelled."""
    cancelled, crashed = FailureKind.CANCELLED, FailureKind.CRASH
    cases = {"measured": (None, cancelled), "crashed": (crashed, cancelled), "cut": (cancelled,)}
    save_trials(
        database,
        [
            make_trial(workload=make_workload(name), run_id="R", failure=failure)
            for name, failures in cases.items()
            for failure in failures
        ],
    )
    return trials_frame(database)


def test_a_cancelled_trial_is_no_failing_case(sqlite_database: Database) -> None:
    cases = summarize_cases(stored(sqlite_database)).set_index("workload")
    assert cases["status"].to_dict() == {"crashed": "failed", "measured": "ok"}
    assert cases["trials"].to_dict() == {"crashed": 1, "measured": 1}
    assert cases["failed_trials"].to_dict() == {"crashed": 1, "measured": 0}
    assert cases["failure_kind"].dropna().to_dict() == {"crashed": "crash"}


def test_values_and_points_leave_it_out_as_well(sqlite_database: Database) -> None:
    frame = stored(sqlite_database)
    for rows in (case_values(frame), series_points(frame)):
        assert sorted(rows["workload"]) == ["crashed", "measured"]
