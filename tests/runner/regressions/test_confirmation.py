"""Suspicions measured again: on both builds taking turns, decided by the fresh trials, asked for once."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from compilewatch.db.engine.session import Database
from compilewatch.db.judge.compare.recorded_regressions import TriageEvent
from compilewatch.db.judge.policy import Policy
from compilewatch.db.judge.results import Comparison
from compilewatch.db.records.people import TriageState
from compilewatch.db.records.requests import RequestKind
from compilewatch.db.records.trial import Trial
from compilewatch.db.records.vocabulary import Metric
from compilewatch.db.service.recording import record_comparison, triage
from compilewatch.db.service.regressions import regressions_frame, standing_regressions
from compilewatch.db.service.requests import note_runs, queue, take_request
from compilewatch.db.store.trials import save_trials
from compilewatch.runner.config.settings import BuildSettings, Settings
from compilewatch.runner.plan.host_stacks import HostStacks, MissingBuildError
from compilewatch.runner.regressions.confirmation import confirmation_plan, request_confirmation
from compilewatch.runner.regressions.log import log_builds
from tests.builders import make_build
from tests.regression_cases import RUN_0, RUN_1, judged, stepping_history

NOW = datetime(2026, 11, 21, 9, 0, tzinfo=UTC)
FRESH = ("fresh-a", "fresh-b")


@pytest.fixture
def suspected(sqlite_database: Database) -> Database:
    """2.13.0 looks 10 % slower than 2.12.0; nobody has looked again."""
    save_trials(sqlite_database, stepping_history(1.0, 1.4, builds=("2.12.0", "2.13.0")))
    record_comparison(sqlite_database, judged(sqlite_database, RUN_0, RUN_1), at=NOW)
    return sqlite_database


def taking_turns(*factors: float) -> list[Trial]:
    """Both builds measured again an hour apart in alternation, seven trials a case."""
    history = stepping_history(*factors, builds=("2.12.0", "2.13.0"), trials_per_case=7)
    start = {RUN_0: history[0].started_at, RUN_1: history[-1].started_at}
    names = dict(zip((RUN_0, RUN_1), FRESH, strict=True))
    first = min(start.values())
    found = []
    for run in (RUN_0, RUN_1):
        mine = [trial for trial in history if trial.run_id == run]
        for number, trial in enumerate(mine):
            turn = timedelta(days=2, minutes=2 * number + (run == RUN_1))
            found.append(
                trial.model_copy(
                    update={
                        "run_id": names[run],
                        "trial_id": f"{names[run]}-{number:04d}",
                        "started_at": first + turn,
                        "ended_at": first + turn + timedelta(seconds=30),
                    }
                )
            )
    return found


def test_fresh_trials_on_both_builds_confirm(suspected: Database) -> None:
    save_trials(suspected, taking_turns(1.0, 1.1))
    logged = log_builds(suspected, FRESH, Settings())
    assert logged.recorded.new == ()
    assert {each.state for each in standing_regressions(suspected)} == {TriageState.CONFIRMED}
    notes = {each.triage[-1].note or "" for each in standing_regressions(suspected)}
    assert all("fresh-b" in note for note in notes)


def test_what_fresh_trials_on_both_builds_do_not_show_was_noise(suspected: Database) -> None:
    save_trials(suspected, taking_turns(1.0, 1.0))
    logged = log_builds(suspected, FRESH, Settings())
    assert logged.recorded.confirmed == ()
    assert standing_regressions(suspected) == ()
    everything = regressions_frame(suspected, revised=True)
    revised = everything[everything["revision"] == 1]
    assert set(revised["cause"]) == {"noise"}
    assert revised["reason"].str.startswith("7 and 7 fresh trials do not show it").all()


def test_a_run_of_the_base_alone_decides_nothing(suspected: Database) -> None:
    save_trials(suspected, [trial for trial in taking_turns(1.0, 1.0) if trial.run_id == "fresh-a"])
    assert not log_builds(suspected, ["fresh-a"], Settings()).recorded
    assert {each.state for each in standing_regressions(suspected)} == {TriageState.NEW}


def test_builds_that_took_turns_are_judged_against_each_other(sqlite_database: Database) -> None:
    save_trials(sqlite_database, taking_turns(1.0, 1.1))
    # in the order of their releases, whichever order they are named in
    logged = log_builds(sqlite_database, FRESH[::-1], Settings())
    assert {(each.base.run_ids, each.head.run_ids) for each in logged.recorded.new} == {
        (("fresh-a",), ("fresh-b",))
    }
    assert not log_builds(sqlite_database, FRESH, Settings()).recorded


def on_this_host(*torches: str) -> HostStacks:
    """A host with the builds of the histories, each behind an interpreter named after its torch."""
    return HostStacks(
        tuple(
            (BuildSettings(name=f"torch-{torch}", python=Path(f"/opt/{torch}")), make_build(torch))
            for torch in torches
        )
    )


def compared(database: Database) -> Comparison:
    return judged(database, RUN_0, RUN_1)


def test_a_second_look_names_both_builds_and_is_asked_for_once(suspected: Database) -> None:
    host = on_this_host("2.12.0", "2.13.0")
    asked = request_confirmation(suspected, compared(suspected), Policy(), host, at=NOW)
    assert asked is not None
    (request,) = queue(suspected)
    assert request.kind is RequestKind.CONFIRMATION
    stacks = (make_build(torch).model_copy(update={"settings": {}}) for torch in ("2.12.0", "2.13.0"))
    assert request.spec.stacks == tuple(stacks)
    assert set(request.spec.cases) == {("mlp", "default"), ("bert-base", "default")}
    assert (request.spec.trials, request.spec.budget_trials) == (7, 280)
    assert request.spec.machine == "gpu-box-3"
    assert request_confirmation(suspected, compared(suspected), Policy(), host, at=NOW) is None
    assert len(queue(suspected)) == 1


@pytest.mark.parametrize(
    ("metric", "profiled"),
    [(Metric.LATENCY, True), (Metric.DEVICE_TIME, True), (Metric.COMPILE_COST, False)],
)
def test_a_second_look_takes_profiles_of_what_they_explain(
    sqlite_database: Database, metric: Metric, profiled: bool
) -> None:
    save_trials(sqlite_database, stepping_history(1.0, 1.4, builds=("2.12.0", "2.13.0")))
    found = compared(sqlite_database)
    rows = [row.model_copy(update={"metric": metric}) for row in found.rows if row.metric is Metric.LATENCY]
    found = found.model_copy(update={"rows": tuple(rows)})
    planned = confirmation_plan(sqlite_database, found, Policy(), on_this_host("2.12.0", "2.13.0"))
    assert planned.spec.profile is profiled


def test_where_a_build_is_gone_nothing_is_asked_and_the_regressions_stay_suspected(
    suspected: Database,
) -> None:
    with pytest.raises(MissingBuildError) as gone:
        request_confirmation(suspected, compared(suspected), Policy(), on_this_host("2.13.0"), at=NOW)
    assert str(gone.value).startswith(
        "torch 2.12.0 (cu130) cannot be measured again on this host: no build here has that torch."
    )
    assert queue(suspected) == []
    assert {each.state for each in standing_regressions(suspected)} == {TriageState.NEW}


def test_the_service_says_which_build_is_gone(
    sqlite_database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    save_trials(sqlite_database, taking_turns(1.0, 1.1))
    log_builds(sqlite_database, FRESH, Settings(), request_confirmations=True)
    assert queue(sqlite_database) == []
    said = [record.getMessage() for record in caplog.records if record.name == "compilewatch.regressions"]
    assert len(said) == 1
    assert said[0].startswith("torch 2.12.0 (cu130) cannot be measured again on this host")


def test_what_somebody_decided_is_not_asked_again(suspected: Database) -> None:
    for found in standing_regressions(suspected):
        event = TriageEvent(state=TriageState.EXPECTED, author="eve", at=NOW)
        triage(suspected, found.regression.regression_id, event)
    host = on_this_host("2.12.0", "2.13.0")
    assert request_confirmation(suspected, compared(suspected), Policy(), host, at=NOW) is None


def test_what_was_only_suspected_is_confirmed_by_the_runs_it_asked_for(sqlite_database: Database) -> None:
    """One run a side cannot tell 16 %, but it is worth a second look; that one finds 10 %."""
    first = stepping_history(1.0, 1.16, builds=("2.12.0", "2.13.0"), trials_per_case=3)
    save_trials(sqlite_database, first)
    comparison = compared(sqlite_database)
    assert not record_comparison(sqlite_database, comparison, at=NOW)
    host = on_this_host("2.12.0", "2.13.0")
    assert request_confirmation(sqlite_database, comparison, Policy(), host, at=NOW) is not None
    taken = take_request(sqlite_database, owner="host:1", at=NOW, fits=lambda _request: True)
    note_runs(sqlite_database, taken.request_id, FRESH, owner=taken.owner or "", at=NOW)
    save_trials(sqlite_database, taking_turns(1.0, 1.1))
    logged = log_builds(sqlite_database, FRESH, Settings(), request_confirmations=True)
    assert logged.recorded.new
    assert logged.recorded.new == logged.recorded.confirmed
    assert {each.state for each in standing_regressions(sqlite_database)} == {TriageState.CONFIRMED}
    assert queue(sqlite_database) == [], "a second look asks for no third one"


def test_a_policy_without_extra_trials_asks_for_none(suspected: Database) -> None:
    policy = Policy.model_validate({"confirm": {"budget_trials": 0}})
    host = on_this_host("2.12.0", "2.13.0")
    assert request_confirmation(suspected, compared(suspected), policy, host, at=NOW) is None
    assert queue(suspected) == []
