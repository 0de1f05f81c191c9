"""What was just measured is judged, and nothing else that was stored meanwhile."""

from __future__ import annotations

from compilewatch.db.engine.session import Database
from compilewatch.db.records.people import TriageState
from compilewatch.db.service.recording import TriageEvent, triage
from compilewatch.db.service.regressions import standing_regressions
from compilewatch.db.store.trials import save_trials
from compilewatch.runner.cli.judge.judging import judge_and_log, worst_verdicts
from compilewatch.runner.cli.measure import run
from compilewatch.runner.config.settings import Settings
from compilewatch.runner.process.execution import RunOutcome
from tests.builders import START, make_history
from tests.regression_cases import RUN_1, RUN_2, stepping_history

WORKLOADS = ("mlp", "bert-base")
BUILDS = ("2.12.0", "2.13.0", "2.14.0")


def test_the_run_is_judged_against_the_one_before(sqlite_database: Database) -> None:
    save_trials(sqlite_database, stepping_history(1.0, 1.0, 1.4, builds=BUILDS))
    judged, logged = judge_and_log(sqlite_database, [RUN_2], WORKLOADS, Settings())
    assert (judged.comparison.base.run_ids, judged.comparison.head.run_ids) == ((RUN_1,), (RUN_2,))
    assert {each.row.workload for each in logged.recorded.new} == set(WORKLOADS)


def test_what_somebody_accepted_ends_no_run_with_one(sqlite_database: Database) -> None:
    outcome = RunOutcome(measured=1, failed=0, waiting=0, interrupted=False)
    save_trials(sqlite_database, stepping_history(1.0, 1.4, builds=BUILDS[:2]))
    first, _ = judge_and_log(sqlite_database, [RUN_1], WORKLOADS, Settings())
    assert run._exit_code(outcome, first) == 1
    for each in standing_regressions(sqlite_database):
        expected = TriageEvent(state=TriageState.EXPECTED, author="ann", at=START)
        triage(sqlite_database, each.regression.regression_id, expected)
    again, logged = judge_and_log(sqlite_database, [RUN_1], WORKLOADS, Settings())
    assert run._exit_code(outcome, again) == 0
    assert logged.recorded.new == ()


def test_a_newer_run_of_another_host_is_left_to_that_host(sqlite_database: Database) -> None:
    save_trials(sqlite_database, stepping_history(1.0, 1.0, 1.4, builds=BUILDS))
    judged, logged = judge_and_log(sqlite_database, [RUN_1], WORKLOADS, Settings())
    assert judged is None
    assert logged.recorded.new == ()


def test_a_workload_that_was_planned_and_never_stored_keeps_nothing_from_being_judged(
    sqlite_database: Database,
) -> None:
    save_trials(sqlite_database, stepping_history(1.0, 1.4, builds=BUILDS[:2]))
    judged, _ = judge_and_log(sqlite_database, [RUN_1], (*WORKLOADS, "cancelled-before-it-began"), Settings())
    assert judged.comparison.matched == 4


def test_what_fails_in_both_runs_has_no_verdict(sqlite_database: Database) -> None:
    failing = [("mlp", "default", run) for run in (0, 1)]
    trials = make_history(workloads=("mlp", "bert-base"), builds=("2.12.0",) * 2, failures=failing)
    save_trials(sqlite_database, trials)
    judged, _ = judge_and_log(sqlite_database, [trials[-1].run_id], (), Settings())
    assert judged is not None
    worst = worst_verdicts(judged.comparison)
    assert ("mlp", "default") not in worst
    assert ("bert-base", "default") in worst
