"""Recorded regressions: once, revised by naming the old verdict, confirmed by fresh trials, triaged."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pytest

from compilewatch.db.engine.session import Database, open_database
from compilewatch.db.errors import ConflictError, NotFoundError
from compilewatch.db.judge.compare.recorded_regressions import (
    EventKind,
    Regression,
    TriageEvent,
    event_subject,
    moved,
)
from compilewatch.db.queries.data_version import data_version
from compilewatch.db.records.people import BY_THE_JUDGE, TriageState
from compilewatch.db.records.vocabulary import CauseClass, Metric, Verdict
from compilewatch.db.service.recording import record_comparison, record_confirmation, triage
from compilewatch.db.service.regressions import (
    changes_frame,
    regression_state,
    regressions_frame,
    standing_regressions,
)
from compilewatch.db.store.trials import save_trials
from tests.builders import MS, make_compiler_facts, make_history
from tests.regression_cases import RUN_0, RUN_1, RUN_2, RUN_3, STEADY_NS, judged, stepping_history

NOW = datetime(2026, 11, 21, 9, 0, tzinfo=UTC)
LATER = datetime(2026, 11, 22, 9, 0, tzinfo=UTC)


def _regress(database: Database) -> Database:
    """2.13.0 is 40 % slower than 2.12.0 when compiled, in two runs; a third run is as quick as the first."""
    builds = ("2.12.0", "2.13.0", "2.13.0", "2.13.0")
    save_trials(database, stepping_history(1.0, 1.4, 1.4, 1.0, builds=builds))
    return database


@pytest.fixture(scope="module")
def once_regressed(_sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = Path(shutil.copy(_sqlite_template, tmp_path_factory.mktemp("regressed") / "regressed.db"))
    with open_database(f"sqlite:///{path}") as database:
        _regress(database)
    return path


@pytest.fixture
def regressed(once_regressed: Path, tmp_path: Path) -> Iterator[Database]:
    """A copy to write into."""
    with open_database(f"sqlite:///{shutil.copy(once_regressed, tmp_path / 'regressed.db')}") as database:
        yield database


@pytest.fixture
def regressed_on_both(database: Database) -> Database:
    """For what is written and asked in more than one statement."""
    return _regress(database)


def latency_of_mlp(database: Database) -> str:
    frame = regressions_frame(database)
    mine = frame[(frame["workload"] == "mlp") & (frame["metric"] == "latency")]
    return str(mine["regression_id"].iloc[0])


def test_every_regression_is_recorded_once_with_its_numbers(regressed_on_both: Database) -> None:
    comparison = judged(regressed_on_both, RUN_0, RUN_1)
    recorded = record_comparison(regressed_on_both, comparison, at=NOW)
    rows = [row for row in comparison.rows if row.verdict is Verdict.REGRESSED]
    assert {row.metric for row in rows} >= {Metric.LATENCY, Metric.SPEEDUP}
    # One event however many metrics show it: what people pay first speaks for it.
    times = [each for each in recorded.new if moved(each.row.metric) is EventKind.TIME]
    assert [each.row.metric for each in times] == [Metric.LATENCY] * len({row.case.ids for row in rows})
    shown = {(row.case.ids, row.metric) for each in recorded.new for row in (each.row, *each.also)}
    assert shown == {(row.case.ids, row.metric) for row in rows}
    assert (recorded.revised, recorded.confirmed) == ((), ())
    frame = regressions_frame(regressed_on_both)
    assert set(frame["state"]) == {"new"}
    changes = changes_frame(regressed_on_both)
    assert set(changes["change_id"]) == set(frame["change_id"])
    assert int(changes["cases"].sum()) == len(frame) == int(changes["open"].sum())
    assert set(frame["base"]) == {"torch 2.12.0"}
    assert set(frame["head"]) == {"torch 2.13.0"}
    mlp = regression_state(regressed_on_both, latency_of_mlp(regressed_on_both)).regression
    assert mlp.row in comparison.rows
    assert mlp.row.change == pytest.approx(0.40, abs=0.01)
    assert (mlp.recorded_at, mlp.base, mlp.revision, mlp.revises) == (NOW, comparison.base, 0, None)


def test_recording_again_changes_nothing(regressed_on_both: Database) -> None:
    comparison = judged(regressed_on_both, RUN_0, RUN_1)
    record_comparison(regressed_on_both, comparison, at=NOW)
    before, version = regressions_frame(regressed_on_both), data_version(regressed_on_both)
    assert not record_comparison(regressed_on_both, comparison, at=LATER)
    assert regressions_frame(regressed_on_both).equals(before)
    assert data_version(regressed_on_both) == version


def test_many_processes_record_one_regression_once(
    regressed_on_both: Database, open_again: Callable[[], Database]
) -> None:
    comparison = judged(regressed_on_both, RUN_0, RUN_1)
    databases = [open_again() for _ in range(4)]
    with ThreadPoolExecutor(4) as pool:
        counts = list(pool.map(lambda each: len(record_comparison(each, comparison, at=NOW).new), databases))
    expected = len({event_subject(row) for row in comparison.rows if row.verdict is Verdict.REGRESSED})
    assert sorted(counts) == [0, 0, 0, expected]
    assert len(regressions_frame(regressed_on_both)) == expected


def test_fresh_trials_that_show_it_again_confirm_it(regressed: Database) -> None:
    recorded = record_comparison(regressed, judged(regressed, RUN_0, RUN_1), at=NOW)
    again = record_comparison(regressed, judged(regressed, RUN_0, RUN_2), at=LATER)
    assert (again.new, again.revised) == ((), ())
    assert {each.regression_id for each in again.confirmed} >= {
        each.regression_id for each in recorded.new if each.row.metric is Metric.LATENCY
    }
    found = regression_state(regressed, latency_of_mlp(regressed))
    assert found.state is TriageState.CONFIRMED
    assert (found.triage[-1].author, found.triage[-1].at) == (BY_THE_JUDGE, LATER)
    assert RUN_2 in (found.triage[-1].note or "")


def test_a_revised_verdict_names_the_old_one_and_leaves_it_as_it_was(regressed: Database) -> None:
    first = record_comparison(regressed, judged(regressed, RUN_0, RUN_1), at=NOW)
    identifier = latency_of_mlp(regressed)
    before = regression_state(regressed, identifier).regression
    back = record_comparison(regressed, judged(regressed, RUN_0, RUN_3), at=LATER)
    old = regression_state(regressed, identifier)
    assert old.regression == before
    new = next(each for each in back.revised if each.revises == identifier)
    assert old.revised_by == new.regression_id
    # Separate runs of few trials show no equality, but they would have shown the recorded step.
    assert new.row.verdict is Verdict.INCONCLUSIVE
    assert new.revision == 1
    assert ids(first.new).isdisjoint(ids(back.revised))
    assert identifier not in set(regressions_frame(regressed)["regression_id"])
    assert {identifier, new.regression_id} <= set(regressions_frame(regressed, revised=True)["regression_id"])
    assert identifier not in {each.regression.regression_id for each in standing_regressions(regressed)}


def ids(regressions: Iterable[Regression]) -> set[str]:
    return {each.regression_id for each in regressions}


def test_a_regression_that_returns_is_a_further_revision(regressed: Database) -> None:
    record_comparison(regressed, judged(regressed, RUN_0, RUN_1), at=NOW)
    identifier = latency_of_mlp(regressed)
    record_comparison(regressed, judged(regressed, RUN_0, RUN_3), at=NOW)
    record_comparison(regressed, judged(regressed, RUN_0, RUN_2), at=LATER)
    again = regression_state(regressed, latency_of_mlp(regressed)).regression
    assert again.revision == 2
    assert again.revises == regression_state(regressed, identifier).revised_by


def test_a_comparison_that_cannot_tell_takes_nothing_back(database: Database) -> None:
    thorough = stepping_history(1.0, 1.4, builds=("2.12.0", "2.13.0"))
    save_trials(database, thorough)
    record_comparison(database, judged(database, RUN_0, RUN_1), at=NOW)
    before = regressions_frame(database)
    # Half of the step: one trial rules out neither the step nor that there is none.
    quick = make_history(
        workloads=("mlp",),
        builds=("2.13.0",),
        latency_ns=lambda _, strategy, __: 12 * MS if strategy == "eager" else 1.2 * STEADY_NS,
        trials_per_case=1,
        seed=9,
    )
    save_trials(database, quick)
    comparison = judged(database, RUN_0, quick[0].run_id)
    assert {row.verdict for row in comparison.rows if row.metric is Metric.LATENCY} == {Verdict.INCONCLUSIVE}
    assert not record_comparison(database, comparison, at=LATER)
    assert regressions_frame(database).equals(before)


def test_counts_are_confirmed_at_once(database: Database) -> None:
    old, new = (
        make_history(workloads=("mlp",), strategies=("default",), builds=(torch,), seed=seed)
        for torch, seed in (("2.12.0", 1), ("2.13.0", 2))
    )
    facts = make_compiler_facts(recompiles=[])
    breaks = facts.model_copy(update={"graph_breaks": []})
    save_trials(database, [trial.model_copy(update={"compiler": breaks}) for trial in old])
    save_trials(database, [trial.model_copy(update={"compiler": facts}) for trial in new])
    comparison = judged(database, old[0].run_id, new[0].run_id)
    recorded = record_comparison(database, comparison, at=NOW)
    assert [each.row.metric for each in recorded.confirmed] == [Metric.GRAPH_BREAKS]


def test_a_second_look_says_nothing_about_other_cases(regressed: Database) -> None:
    recorded = record_comparison(regressed, judged(regressed, RUN_0, RUN_1), at=NOW)
    mlp = [each for each in recorded.new if each.row.workload == "mlp"]
    again = record_confirmation(regressed, judged(regressed, RUN_0, RUN_2), mlp, at=LATER)
    assert again.confirmed
    assert {each.row.workload for each in again.confirmed} == {"mlp"}
    assert again.new == ()


def test_a_second_look_that_does_not_show_it_takes_it_back_as_noise(regressed: Database) -> None:
    recorded = record_comparison(regressed, judged(regressed, RUN_0, RUN_1), at=NOW)
    again = record_confirmation(regressed, judged(regressed, RUN_0, RUN_3), recorded.new, at=LATER)
    assert again.confirmed == ()
    assert {each.revises for each in again.revised} == ids(recorded.new)
    assert {each.row.cause for each in again.revised} == {CauseClass.NOISE}
    assert {each.head_key for each in again.revised} == {each.head_key for each in recorded.new}
    assert standing_regressions(regressed) == ()


def test_a_second_look_with_too_few_trials_decides_nothing(regressed: Database) -> None:
    recorded = record_comparison(regressed, judged(regressed, RUN_0, RUN_1), at=NOW)
    quick = make_history(workloads=("mlp",), builds=("2.13.0",), trials_per_case=2, seed=9)
    save_trials(regressed, quick)
    again = judged(regressed, RUN_0, quick[0].run_id)
    assert not record_confirmation(regressed, again, recorded.new, at=LATER)
    assert {each.state for each in standing_regressions(regressed)} == {TriageState.NEW}


def test_triage_keeps_who_said_what_when(regressed_on_both: Database) -> None:
    record_comparison(regressed_on_both, judged(regressed_on_both, RUN_0, RUN_1), at=NOW)
    identifier = latency_of_mlp(regressed_on_both)
    first = TriageEvent(state=TriageState.ACKNOWLEDGED, author="ada", at=NOW, note="Mine.")
    second = TriageEvent(
        state=TriageState.EXPECTED, author="grace", at=LATER, url="https://example.com/issues/7"
    )
    assert triage(regressed_on_both, identifier, first)
    assert not triage(regressed_on_both, identifier, first.model_copy(update={"at": LATER}))
    assert triage(regressed_on_both, identifier[:10], second)
    found = regression_state(regressed_on_both, identifier)
    assert found.triage == (first, second)
    assert found.state is TriageState.EXPECTED


def test_triage_of_what_is_not_there_or_no_longer_stands(regressed: Database) -> None:
    record_comparison(regressed, judged(regressed, RUN_0, RUN_1), at=NOW)
    event = TriageEvent(state=TriageState.FIXED, author="ada", at=NOW)
    for unknown in ("", "nothing", "%", "_"):
        with pytest.raises(NotFoundError):
            triage(regressed, unknown, event)
    identifier = latency_of_mlp(regressed)
    record_comparison(regressed, judged(regressed, RUN_0, RUN_3), at=LATER)
    with pytest.raises(ConflictError, match="was revised"):
        triage(regressed, identifier, event)
    assert regression_state(regressed, identifier).triage == ()


def test_what_people_said_is_never_overruled_by_a_second_look(regressed: Database) -> None:
    record_comparison(regressed, judged(regressed, RUN_0, RUN_1), at=NOW)
    identifier = latency_of_mlp(regressed)
    triage(regressed, identifier, TriageEvent(state=TriageState.EXPECTED, author="ada", at=NOW))
    record_comparison(regressed, judged(regressed, RUN_0, RUN_2), at=LATER)
    assert regression_state(regressed, identifier).state is TriageState.EXPECTED
