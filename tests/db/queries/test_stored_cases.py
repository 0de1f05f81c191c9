"""Stored cases page by page: together the whole, none twice, none missing, and only their trials are read."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pandas as pd
import pytest

from compilewatch.db.columns.case import CASE_KEYS
from compilewatch.db.engine.session import Database
from compilewatch.db.errors import NotFoundError
from compilewatch.db.metrics.cases import summarize_cases
from compilewatch.db.metrics.eligibility import without_canaries
from compilewatch.db.queries.selection import Filters
from compilewatch.db.queries.stored_cases import stored_cases
from compilewatch.db.queries.trials import trials_frame
from compilewatch.db.records.trial import SourceKind, Status
from compilewatch.db.store.trials import save_trials
from tests.builders import START, make_history, make_imported, make_machine, make_trial

FILTERS = [
    Filters(),
    Filters(strategies=("default",)),
    Filters(workloads=("canary-gemm",)),
    Filters(statuses=(Status.FAILED,)),
    Filters(sources=(SourceKind.IMPORTED,)),
    Filters(since=START + timedelta(days=0.5)),
    Filters(runs=("no such run",)),
]


@pytest.fixture(scope="module")
def stored(module_database: Database) -> Database:
    """Machines of one name, builds that several runs measured, the machine's control, a cancelled case."""
    builds = ("2.9.0", "2.10.0", "2.10.0")
    twin = make_machine("gpu-box-3", device_name="NVIDIA L4")
    save_trials(
        module_database,
        [
            *make_history(workloads=("bert-base", "mlp"), builds=builds, failures=[("mlp", "default", 1)]),
            *make_history(workloads=("mlp",), builds=("2.10.0",), machines=(twin,), seed=1),
            make_trial(workload="canary-gemm", strategy="eager"),
            make_trial(workload="stopped", failure="cancelled"),
            make_imported(),
        ],
    )
    return module_database


def in_pages(database: Database, filters: Filters, limit: int) -> pd.DataFrame:
    pages, after = [], None
    while len(page := stored_cases(database, filters, after=after, limit=limit)):
        pages.append(page)
        after = page["case_id"].iloc[-1]
    return pd.concat(pages, ignore_index=True) if pages else page


@pytest.mark.parametrize("filters", FILTERS, ids=repr)
def test_pages_together_are_the_whole(filters: Filters, stored: Database) -> None:
    trials = trials_frame(stored, replace(filters, strategies=()))
    every = summarize_cases(trials if filters.workloads else without_canaries(trials))
    wanted = every[every["strategy"].isin(filters.strategies)] if filters.strategies else every
    whole = stored_cases(stored, filters)
    assert whole["case_id"].is_unique
    pd.testing.assert_frame_equal(
        whole.drop(columns="case_id").sort_values(CASE_KEYS, ignore_index=True),
        wanted.reset_index(drop=True),
        check_exact=True,
    )
    for limit in (1, 2, 1000):
        pd.testing.assert_frame_equal(in_pages(stored, filters, limit), whole, check_exact=True)


def test_versions_are_ordered_as_versions(stored: Database) -> None:
    listed = stored_cases(stored, Filters(workloads=("bert-base",), sources=(SourceKind.MEASURED,)))
    assert list(listed["torch"].unique()) == ["2.9.0", "2.10.0"]


@pytest.mark.parametrize("cursor", ["", "nothing", "build-series"])
def test_a_cursor_that_is_no_case_is_refused(cursor: str, stored: Database) -> None:
    known = stored_cases(stored, Filters())["case_id"].iloc[0].partition("-")[2]
    for after in (cursor, f"nobody-{known}"):
        with pytest.raises(NotFoundError, match="Begin again"):
            stored_cases(stored, Filters(), after=after, limit=2)


def test_a_page_sums_up_the_trials_of_its_workloads_alone(
    stored: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    summed: list[int] = []

    def counted(trials: pd.DataFrame) -> pd.DataFrame:
        summed.append(len(trials))
        return summarize_cases(trials)

    monkeypatch.setattr("compilewatch.db.queries.stored_cases.summarize_cases", counted)
    (first,) = stored_cases(stored, Filters(), limit=1).itertuples()
    same = trials_frame(
        stored, Filters(machines=(first.machine_id,), workloads=(first.workload,), builds=(first.build_id,))
    )
    assert summed == [len(same)]
