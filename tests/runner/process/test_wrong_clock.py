"""A host whose clock is wrong: nothing that it measures is stored, and a line of its log says why."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from compilewatch.db.engine.session import Database
from compilewatch.db.errors import RecordError
from compilewatch.db.queries.facets import runs
from compilewatch.db.queries.records import trial_records
from compilewatch.db.queries.selection import Filters
from compilewatch.runner.config.settings import Settings
from compilewatch.runner.config.sources import load_settings
from compilewatch.runner.device.state import DeviceWatch, device_facts
from compilewatch.runner.fleet.measurer import Equipment, Measurement
from compilewatch.runner.fleet.message import message_of
from compilewatch.runner.plan.plan import Plan, plan_run
from compilewatch.runner.process import measured_process
from compilewatch.runner.process.execution import execute, jobs_of
from compilewatch.runner.process.measured_process import Attempt
from compilewatch.runner.process.pipe import ProcessOutcome
from compilewatch.runner.process.record import Listening, assemble
from compilewatch.runner.process.spool import Spool
from tests.runner.measuring import make_spec
from tests.runner.process.test_executors import Heard
from tests.runner.quick_measurement import configuration, interpreter

pytestmark = pytest.mark.usefixtures("today")
NOW = datetime.now(UTC)
YEARS = {2999: "is of 2999-", 1: "before there was torch"}


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return load_settings(configuration(tmp_path, interpreter(tmp_path / "build")))


@pytest.fixture
def plan(settings: Settings) -> Plan:
    return plan_run(settings, device="cpu", trials=1, builds=settings.builds)


@pytest.fixture
def set_clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Sets the clock of the process that measures, so that its trials are wrong as a word of WRONG says."""

    def set_it(why: str) -> None:
        if why == "before it begins":
            monkeypatch.setattr(Attempt, "now", lambda attempt: attempt.started_at - timedelta(seconds=1))
            return
        year = next(year for year, words in YEARS.items() if words == why)

        class Clock(datetime):
            @classmethod
            def now(cls, _zone: object = None) -> datetime:  # type: ignore[override]
                return NOW.replace(year=year)

        monkeypatch.setattr(measured_process, "datetime", Clock)

    return set_it


WHY = pytest.mark.parametrize("why", [*YEARS.values(), "before it begins"])


def set_aside(directory: Path) -> list[str]:
    return [path.read_text(encoding="utf-8") for path in (directory / "bad").glob("*.reason.txt")]


@WHY
def test_a_runner_sets_it_aside(
    why: str,
    plan: Plan,
    database: Database,
    tmp_path: Path,
    set_clock: Callable[[str], None],
    caplog: pytest.LogCaptureFixture,
) -> None:
    set_clock(why)
    execute(plan, database, Spool(tmp_path / "spool"), progress=Heard(), is_cancelled=lambda: False)
    assert list(trial_records(database, Filters())) == []
    (reason,) = set_aside(tmp_path / "spool")
    assert reason.startswith(f"Trial {plan.trials[0].trial_id} ")
    assert why in reason
    assert reason.strip() in caplog.text


@WHY
def test_a_worker_of_a_fleet_sets_it_aside(
    why: str,
    plan: Plan,
    settings: Settings,
    database: Database,
    set_clock: Callable[[str], None],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    equipment = Equipment(lambda: settings)
    equipment.database = database
    (job,) = jobs_of(plan)
    set_clock(why)
    message = json.loads(message_of(job).model_dump_json())
    assert Measurement(equipment, "cpu", message, 0).run()
    assert list(trial_records(database, Filters())) == []
    (reason,) = set_aside(settings.data_dir / "spool")
    assert why in reason
    assert reason.strip() in caplog.text


def test_a_clock_that_is_set_back_meanwhile_loses_no_trial_and_marks_its_moment(
    plan: Plan, database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ahead = [timedelta(hours=1)]

    class Clock(datetime):
        @classmethod
        def now(cls, _zone: object = None) -> datetime:  # type: ignore[override]
            return datetime.now(UTC) + ahead[0]

    def set_back(attempt: Attempt) -> datetime:
        ahead[0] = timedelta()
        return told(attempt)

    told = Attempt.now
    monkeypatch.setattr(measured_process, "datetime", Clock)
    monkeypatch.setattr(Attempt, "now", set_back)
    execute(plan, database, Spool(tmp_path / "spool"), progress=Heard(), is_cancelled=lambda: False)
    (trial,) = trial_records(database, Filters())
    assert trial.host_state.clock_set_back_ns == pytest.approx(3600 * 10**9, rel=1e-3)
    assert trial.ended_at is not None
    assert NOW - timedelta(minutes=1) < trial.started_at < trial.ended_at < datetime.now(UTC)


@pytest.mark.parametrize("year", YEARS)
def test_a_run_of_a_year_that_cannot_be_does_not_begin(
    year: int, plan: Plan, database: Database, tmp_path: Path
) -> None:
    heard = Heard()
    with pytest.raises(RecordError, match=f"Run {plan.runs[0].run_id} .*{YEARS[year]}") as refused:
        execute(
            plan,
            database,
            Spool(tmp_path / "spool"),
            progress=heard,
            is_cancelled=lambda: False,
            clock=lambda: NOW.replace(year=year),
        )
    assert refused.value.next_step == "Nothing was measured. Set the clock of this host."
    assert runs(database).empty
    assert Spool(tmp_path / "spool").waiting() == []


@pytest.mark.parametrize("year", YEARS)
def test_what_a_measured_process_says_of_the_time_is_not_believed(year: int) -> None:
    moment = NOW.replace(year=year).isoformat()
    told = {"status": "ok", "samples_ns": [1], "started_at": moment, "ended_at": moment}
    listening = Listening(lambda _phase: None, DeviceWatch("cpu"))
    listening.receive(json.dumps({"mark": "record", **told}).encode())
    trial = assemble(
        make_spec("relu_function"),
        ProcessOutcome(exit_code=0),
        listening,
        started_at=NOW,
        ended_at=NOW,
        oom_killed=False,
        device=device_facts("cpu"),
        compiler=None,
    )
    assert trial.samples_ns == [1]
    assert (trial.started_at, trial.ended_at) == (NOW, NOW)
