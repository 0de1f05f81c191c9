"""What is read: filtered, typed, ordered, and in constant memory."""

from __future__ import annotations

import dataclasses
import tracemalloc
from datetime import datetime, timedelta
from typing import Any

import pandas as pd
import pytest
from sqlalchemy import event

from compilewatch.db.engine.session import Database
from compilewatch.db.queries.case_parts import PHASES, cold_starts, phases_of
from compilewatch.db.queries.facets import builds, machines, runs, runs_with_contents, workloads
from compilewatch.db.queries.selection import Filters
from compilewatch.db.queries.trials import COLUMNS, latest_trials_frame, trial_records, trials_frame
from compilewatch.db.records.ids import build_identity, machine_identity
from compilewatch.db.records.trial import ColdStart, PhasesNs, SourceKind, Status, Task, Trial
from compilewatch.db.store.trials import save_trial, save_trials
from tests.builders import (
    MS,
    START,
    make_build,
    make_cold_start,
    make_compiler_facts,
    make_history,
    make_imported,
    make_machine,
    make_trial,
)

OTHER = make_machine("cpu-box", device="cpu")
MIXED: list[Trial] = [
    *make_history(failures=[("bert-base", "default", 1)], trials_per_case=2),
    *make_history(
        workloads=("mlp",),
        machines=(OTHER,),
        builds=("2.14.1",),
        trials_per_case=1,
        start=START - timedelta(9),
    ),
    make_imported(suite=None, run_id="imported"),
    make_trial(suite="smoke", strategy="max-autotune", run_id="smoke-run", label="candidate"),
]


def in_python(filters: Filters) -> set[str]:
    """The ids of the trials of `MIXED` that the filters select, worked out without a database."""

    def matches(trial: Trial) -> bool:
        chosen = (
            (filters.workloads, trial.workload.name),
            (filters.strategies, trial.strategy.name),
            (filters.machines, machine_identity(trial.machine)),
            (filters.builds, build_identity(trial.build)),
            (filters.suites, trial.suite),
            (filters.runs, trial.run_id),
            (filters.tasks, trial.workload.task),
            (filters.statuses, trial.status),
            (filters.sources, trial.source.kind),
        )
        return (
            all(not wanted or value in wanted for wanted, value in chosen)
            and (filters.since is None or trial.started_at >= filters.since)
            and (filters.until is None or trial.started_at <= filters.until)
        )

    return {trial.trial_id for trial in MIXED if matches(trial)}


@pytest.fixture(scope="module")
def mixed(module_database: Database) -> Database:
    save_trials(module_database, MIXED)
    return module_database


@pytest.mark.parametrize(
    "filters",
    [
        Filters(),
        Filters(workloads=("bert-base",)),
        Filters(workloads=("bert-base", "mlp"), strategies=("default",)),
        Filters(strategies=("max-autotune",)),
        Filters(machines=(machine_identity(OTHER),)),
        Filters(builds=(build_identity(make_build("2.12.0")), build_identity(make_build("2.14.1")))),
        Filters(suites=("smoke",)),
        Filters(runs=("run-gpu-box-3-0-0001", "imported")),
        Filters(tasks=(Task.TRAINING,)),
        Filters(tasks=(Task.INFERENCE,), workloads=("mlp",)),
        Filters(since=START + timedelta(days=1)),
        Filters(until=START),
        Filters(since=START, until=START),
        Filters(statuses=(Status.FAILED,)),
        Filters(statuses=(Status.OK,), strategies=("default",), since=START + timedelta(days=1)),
        Filters(sources=(SourceKind.IMPORTED,)),
        Filters(workloads=("nothing-like-it",)),
        Filters(suites=("'; DROP TABLE trial; --",)),
    ],
    ids=lambda filters: (
        ",".join(field.name for field in dataclasses.fields(filters) if getattr(filters, field.name)) or "all"
    ),
)
def test_filters_select_what_they_say(mixed: Database, filters: Filters) -> None:
    frame = trials_frame(mixed, filters)
    assert set(frame["trial_id"]) == in_python(filters)
    assert frame["started_at"].is_monotonic_increasing
    assert {trial.trial_id for trial in trial_records(mixed, filters)} == in_python(filters)
    assert set(latest_trials_frame(mixed, filters)["trial_id"]) <= in_python(filters)


def test_a_filter_without_a_time_zone_is_refused() -> None:
    with pytest.raises(ValueError, match="since must carry a time zone"):
        Filters(since=datetime(2026, 1, 1))  # noqa: DTZ001


def test_the_newest_run_does_not_depend_on_the_filters(database: Database) -> None:
    save_trials(database, make_history())
    old = Filters(until=START + timedelta(hours=1))
    assert latest_trials_frame(database, old).empty


class TestTrialsFrame:
    def test_has_the_same_typed_columns_empty_or_not(self, database: Database) -> None:
        empty = trials_frame(database)
        save_trials(database, MIXED)
        full = trials_frame(database)
        assert tuple(empty.columns) == COLUMNS == tuple(full.columns)
        assert empty.dtypes.to_dict() == full.dtypes.to_dict()
        assert full["latency_ns"].dtype == "Float64"
        assert full["graphs"].dtype == "Int64"
        assert str(full["started_at"].dtype) == "datetime64[us, UTC]"

    def test_figures_are_those_of_the_record(self, database: Database) -> None:
        trial = make_trial(
            samples_ns=[10, 40, 20, 30],
            control_samples_ns=[100, 50, 60],
            cold_start=make_cold_start(25.0, until_steady_ns=1075, calls_until_steady=3),
            compiler=make_compiler_facts(
                graphs=2, graph_breaks=[{"reason": "a", "count": 2}, {"reason": "b"}], recompiles=[]
            ),
        )
        save_trial(database, trial)
        row = trials_frame(database).iloc[0]
        expected: dict[str, Any] = {
            "latency_ns": 25.0,
            "latency_p05_ns": 11.5,
            "latency_p95_ns": 38.5,
            "latency_p99_ns": 39.7,
            "samples": 4,
            "control_latency_ns": 60.0,
            "control_samples": 3,
            "trial_compile_cost_ns": 1000.0,
            "graphs": 2,
            "graph_breaks": 3,
            "recompiles": 0,
            "numerics_status": "pass",
            "suspect": False,
            "cpu_stall_fraction": 0.006,
            "peak_bytes": 1_234_567_890,
            "time_to_first_result_ns": trial.cold_start.total_ns if trial.cold_start else None,
            "machine": "gpu-box-3",
            "torch": "2.13.0",
            "shape": {"sequence_length": 128},
            "task": "inference",
            "cache": "cold",
        }
        for name, value in expected.items():
            assert row[name] == pytest.approx(value) if isinstance(value, float) else row[name] == value, name

    def test_what_is_missing_is_na_and_never_zero(self, database: Database) -> None:
        save_trial(database, make_trial(failure="timeout", machine=make_machine("x", device="cpu")))
        row = trials_frame(database).iloc[0]
        numbers = [name for name in COLUMNS if name.endswith(("_ns", "_bytes"))]
        others = ["samples", "control_samples", "graphs", "graph_breaks", "recompiles", "suspect", "label"]
        assert [name for name in numbers + others if not pd.isna(row[name])] == []
        assert row["failure_kind"] == "timeout"

    def test_an_imported_summary_stands_in_for_samples(self, database: Database) -> None:
        save_trial(database, make_imported())
        row = trials_frame(database).iloc[0]
        assert (row["latency_ns"], row["control_latency_ns"], row["samples"]) == (8 * MS, 12 * MS, 30)
        assert pd.isna(row["latency_p95_ns"])
        assert pd.isna(row["control_samples"])

    def test_text_is_text_and_no_enum_member(self, database: Database) -> None:
        save_trials(database, MIXED)
        frame = trials_frame(database)
        for name in ("status", "task", "strategy_kind", "cache", "source_kind", "numerics_status"):
            assert {type(value) for value in frame[name].dropna()} == {str}


def test_no_page_walks_the_whole_table_for_a_few_trials(sqlite_database: Database) -> None:
    """SQLite has no statistics on a young database: the statements themselves must lead to the indexes."""
    statements: list[tuple[str, Any]] = []

    def remember(_c: Any, _cursor: Any, statement: str, parameters: Any, *_: Any) -> None:
        statements.append((statement, parameters))

    engine = sqlite_database._reader
    event.listen(engine, "before_cursor_execute", remember)
    trials_frame(sqlite_database, Filters(workloads=("w",), strategies=("s",), machines=("m",)))
    trials_frame(sqlite_database, Filters(runs=("r",)))
    trials_frame(sqlite_database, Filters(builds=("b",)))
    trials_frame(sqlite_database, Filters(since=START))
    latest_trials_frame(sqlite_database)
    cold_starts(sqlite_database, ["t"])
    event.remove(engine, "before_cursor_execute", remember)
    seen = 0
    with sqlite_database.read() as connection:
        for statement, parameters in statements:
            if "FROM trial" in statement:
                plan = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters).all()
                assert not [step[3] for step in plan if step[3].startswith("SCAN trial")], statement
                seen += 1
    assert seen == 6


class TestColdStart:
    def test_phases_add_up_to_the_time_to_first_result(self, database: Database) -> None:
        save_trials(database, MIXED)
        trials = trials_frame(database).set_index("trial_id")
        found = cold_starts(database, list(trials.index))
        expected = trials["time_to_first_result_ns"].fillna(0).to_dict()
        assert {trial_id: sum(phases) for trial_id, phases in found.items()} == expected
        assert {len(phases) for phases in found.values()} == {len(PHASES)}

    def test_more_trials_than_one_statement_asks_for(self, database: Database) -> None:
        save_trials(database, MIXED)
        trial_ids = [*(f"unknown-{number}" for number in range(1200)), *(each.trial_id for each in MIXED)]
        assert set(cold_starts(database, trial_ids)) == {trial.trial_id for trial in MIXED}

    def test_a_first_call_whose_parts_are_unknown_is_one_phase(self) -> None:
        assert phases_of({"total_ns": 100, "import_torch_ns": 30, "first_call_ns": 50}) == [
            ("import_torch", 30),
            ("first_call", 50),
            ("unattributed", 20),
        ]

    def test_parts_that_are_known_replace_the_first_call(self) -> None:
        parts = {"dynamo": 20, "other": 30}
        assert phases_of({"first_call_ns": 50, "phases_ns": parts}) == [("dynamo", 20), ("other", 30)]
        # A whole record has every phase, null where it was not seen.
        whole = ColdStart(first_call_ns=50, phases_ns=PhasesNs(**parts)).model_dump(mode="json")
        assert phases_of(whole) == [("dynamo", 20), ("other", 30)]

    def test_every_phase_of_the_record_has_a_place(self) -> None:
        assert set(PhasesNs.model_fields) < set(PHASES)
        assert {
            f"{phase}_ns"
            for phase in PHASES
            if phase not in PhasesNs.model_fields and phase != "unattributed"
        } < set(make_cold_start(1.0).model_dump())


class TestFacets:
    def test_builds_are_ordered_as_versions(self, database: Database) -> None:
        for number, (torch, driver) in enumerate(
            [("2.10.0", "580.10"), ("2.9.1", "580.9"), ("2.10.0", "580.9"), ("2.10.0", "580.159")]
        ):
            build = make_build(torch, driver=driver)
            save_trial(database, make_trial(build=build, started_at=START + timedelta(days=number)))
        frame = builds(database)
        assert list(zip(frame["torch"], frame["driver"], strict=True)) == [
            ("2.9.1", "580.9"),
            ("2.10.0", "580.9"),
            ("2.10.0", "580.10"),
            ("2.10.0", "580.159"),
        ]
        assert set(frame["build_id"]) == set(trials_frame(database)["build_id"])

    def test_two_versions_of_a_workload_are_two_rows(self, database: Database) -> None:
        first = make_trial()
        edited = first.workload.model_copy(update={"version": "edited"})
        save_trials(database, [first, make_trial(workload=edited, started_at=START + timedelta(days=1))])
        assert workloads(database)["workload_version"].tolist() == [first.workload.version, "edited"]

    def test_runs_are_newest_first_and_imported_ones_start_with_their_first_trial(
        self, database: Database
    ) -> None:
        save_trials(database, make_history())
        frame = runs(database)
        assert frame["run_id"].tolist() == [f"run-gpu-box-3-0-000{number}" for number in (2, 1, 0)]
        assert frame["started_at"].iloc[-1] == START
        assert frame["status"].isna().all()

    def test_an_empty_database_has_empty_facets(self, database: Database) -> None:
        for facet in (machines, builds, workloads, runs):
            frame = facet(database)
            assert frame.empty
            assert {"trials", "failed_trials", "first_seen_at", "last_seen_at"} <= set(frame.columns)


def test_records_are_read_in_constant_memory(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """Four times the trials must not take four times the memory."""
    monkeypatch.setattr("compilewatch.db.queries.records._BATCH", 25)

    def peak_bytes() -> int:
        tracemalloc.start()
        for _ in trial_records(database):
            pass
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return peak

    def grow(first: int, count: int) -> None:
        save_trials(
            database,
            (make_trial(trial_id=f"trial-{n:05d}", samples=200) for n in range(first, first + count)),
        )

    grow(0, 75)
    few = peak_bytes()
    grow(75, 225)
    assert peak_bytes() < 1.5 * few


def test_records_come_oldest_first(database: Database) -> None:
    save_trials(database, MIXED)
    starts = [trial.started_at for trial in trial_records(database)]
    assert starts == sorted(starts)
    assert len(starts) == len(MIXED)


def test_a_run_says_what_it_measured_and_its_canaries_apart(sqlite_database: Database) -> None:
    names = ("mlp", "mlp", "cnn", "canary-copy")
    save_trials(sqlite_database, [make_trial(run_id="mine", workload=name) for name in names])
    (row,) = runs_with_contents(sqlite_database).to_dict("records")
    assert (row["workloads"], row["trials"], row["canaries"]) == ("cnn, mlp", 4, 1)
