"""A database with rows in every table, written as the program writes them."""

from __future__ import annotations

from datetime import timedelta

from sqlalchemy import insert

from compilewatch import __version__
from compilewatch.db.engine.session import Database
from compilewatch.db.engine.tables import FLEET_WORKER
from compilewatch.db.judge.compare.recorded_regressions import TriageEvent
from compilewatch.db.queries.trials import trial_records
from compilewatch.db.records.access import Scope, Token, secret_hash
from compilewatch.db.records.hosts import (
    FleetWorker,
    HostDevice,
    HostHealth,
    HostState,
    JobEvent,
    JobReport,
    Launch,
)
from compilewatch.db.records.ids import build_identity
from compilewatch.db.records.people import Annotation, IssueScript, Report, ScriptRun, TriageState
from compilewatch.db.records.requests import (
    Firing,
    FiringOutcome,
    RequestKind,
    RequestSpec,
    RequestState,
    ScheduleSpec,
)
from compilewatch.db.service.annotations import ANNOTATIONS
from compilewatch.db.service.fleet import claim_launch, end_launch
from compilewatch.db.service.hosts import HEALTHS, save_host
from compilewatch.db.service.jobs import claim_compiled, save_report
from compilewatch.db.service.recording import claim_notifications, record_comparison, triage
from compilewatch.db.service.regressions import standing_regressions
from compilewatch.db.service.reports import REPORTS, store_view
from compilewatch.db.service.requests import end_request, new_request, run_request, save_request, take_request
from compilewatch.db.service.schedules import (
    claim_firing,
    note_next_runs,
    pause_schedule,
    save_due,
    save_schedule,
)
from compilewatch.db.service.tokens import TOKENS
from compilewatch.db.store.trials import save_trials, start_run
from compilewatch.db.verdicts.issue import ISSUE_SCRIPTS
from tests.builders import START, make_imported, make_timed, make_trial
from tests.regression_cases import RUN_0, RUN_1, judged, stepping_history

HOST = "gpu-box"
SPEC = ScheduleSpec(cron="0 2 * * *", suite="standard", machine=HOST)


def fill_every_table(database: Database) -> None:
    """Trials that were measured, imported and failed, and whatever else a team's database comes to hold."""
    start_run(
        database, run_id="announced", suite="smoke", label="new driver", started_at=START, planned_trials=3
    )
    save_trials(database, [make_trial(failure="out_of_memory"), make_imported(), make_timed()])
    code = {"commit": "0123456789abcdef0123456789abcdef01234567", "dirty": True, "source_hash": "0" * 16}
    save_trials(database, [make_timed(code=code)])
    save_trials(database, stepping_history(1.0, 1.4, builds=("2.12.0", "2.13.0")))
    _judge(database)
    _plan(database)
    _serve(database)
    _share(database)


def _judge(database: Database) -> None:
    record_comparison(database, judged(database, RUN_0, RUN_1), at=START, channels=("team",), fresh=True)
    assert claim_notifications(database, "team", at=START)
    chosen = standing_regressions(database)[0].regression.regression_id
    event = TriageEvent(
        state=TriageState.ACKNOWLEDGED, author="ann", at=START, note="see the change of 5 May"
    )
    assert triage(database, chosen, event)


def _plan(database: Database) -> None:
    save_schedule(database, "nightly", SPEC, at=START, from_config=True)
    save_schedule(database, "weekly", ScheduleSpec(cron="0 3 * * mon"), at=START)
    note_next_runs(database, "nightly", [START + timedelta(days=1), START + timedelta(days=2)])
    assert pause_schedule(database, "weekly", by="ann", at=START)
    save_due(database, "nightly", last_result_at=START, due_at=START + timedelta(days=3))
    request = new_request(
        "fired", RequestKind.SCHEDULE, RequestSpec(suite="standard"), by="schedule nightly", at=START
    )
    firing = Firing(
        schedule="nightly",
        fire_at=START,
        owner=f"{HOST}:1:ab",
        claimed_at=START,
        outcome=FiringOutcome.QUEUED,
        firings=2,
    )
    assert claim_firing(database, firing, request) is FiringOutcome.QUEUED
    assert take_request(database, owner=firing.owner, at=START, fits=lambda _request: True)
    end_request(
        database, "fired", RequestState.FINISHED, owner=firing.owner, at=START, note="2 trials, 0 failed"
    )
    asked = RequestSpec(workloads=("mlp",), strategies=("default",), trials=3, label="before the upgrade")
    save_request(database, new_request("asked", RequestKind.MANUAL, asked, by="ann@desk", at=START))
    assert run_request(database, "fired").state is RequestState.FINISHED


def _serve(database: Database) -> None:
    device = HostDevice(name="NVIDIA H200", uuid="GPU-1", temperature_c=41.0, total_bytes=150_754_820_096)
    save_host(
        database,
        HostState(
            name=HOST,
            owner=f"{HOST}:1:ab",
            started_at=START,
            seen_at=START,
            program_version=__version__,
            free_bytes=10**12,
            total_bytes=2 * 10**12,
            devices=(device,),
            devices_read_at=START,
        ),
    )
    health = HostHealth(host=HOST, seen_at=START, spool_trials=2, spool_bytes=4096, database_errors=1)
    HEALTHS.put(database, health)
    event = JobEvent(number=1, began_ns=1, cost_ns=2_000_000_000, what="forward (serve.py:6)", reason="size")
    report = JobReport(
        process="0" * 32,
        sequence=3,
        job="ranker-serve",
        host=HOST,
        rank=0,
        ready=True,
        steps=12,
        compiling="forward (serve.py:6)",
        compiling_ns=1_000_000,
        since_step_ns=2_000_000,
        compiles_after_ready=1,
        cost_after_ready_ns=2_000_000_000,
        events=(event,),
    )
    assert save_report(database, report, START)
    assert claim_compiled(database, START + timedelta(minutes=2))
    launch = Launch(
        launch_id="launch-1",
        queue="nvidia-h200",
        host=HOST,
        launched_at=START,
        worker_due_at=START + timedelta(hours=1),
        worker=f"{HOST}:2:cd",
        worker_at=START + timedelta(minutes=5),
    )
    assert claim_launch(database, launch, lambda *_: True, stalled_s=30, alive_after=START)
    end_launch(database, "launch-1", at=START, exit_code=0, output="Submitted batch job 7")
    worker = FleetWorker(
        owner=f"{HOST}:2:cd",
        queue="nvidia-h200",
        host=HOST,
        served="0",
        started_at=START,
        seen_at=START,
        stopped_at=START + timedelta(hours=1),
        measured=12,
    )
    with database.write() as connection:
        # A worker writes it itself, as SQL of PostgreSQL alone.
        connection.execute(insert(FLEET_WORKER).values(worker.model_dump()))


def _share(database: Database) -> None:
    first = next(iter(trial_records(database)))
    build = build_identity(first.build)
    ANNOTATIONS.add(
        database,
        Annotation(
            annotation_id="annotation-1",
            text="new driver",
            author="ada",
            written_at=START,
            build_id=build,
            workload=first.workload.name,
        ),
    )
    REPORTS.add(
        database,
        Report(
            report_id="report-1",
            title="Overview",
            created_at=START,
            created_by="ann",
            data_version=7,
            content={"page": "overview", "rows": [[1.5, None, "mlp"]]},
        ),
    )
    store_view(database, "page=trends&workload=mlp", at=START, by="ann")
    runs = [ScriptRun(build_id=build, torch="2.13.0", eager_ns=2e6, compiled_ns=1e6)]
    ISSUE_SCRIPTS.put(
        database, IssueScript(issue_id="issue-1", made_at=START, script="import torch\n", runs=runs)
    )
    TOKENS.add(
        database,
        Token(
            token_id="0badcafe",
            name="grafana",
            secret_hash=secret_hash("cwt_not-a-secret"),
            scopes=(Scope.METRICS,),
            created_at=START,
            created_by="ann",
        ),
    )
