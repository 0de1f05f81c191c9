"""A database in which every page has something to show, from regressions and schedules to reports."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import insert

from compilewatch.dashboard.reports.freeze import freeze_link, store_report
from compilewatch.db.engine.session import Database, open_database
from compilewatch.db.engine.tables import FLEET_WORKER
from compilewatch.db.judge.compare.recorded_regressions import TriageEvent
from compilewatch.db.judge.compare.sides import Selection
from compilewatch.db.queries.trials import trials_frame
from compilewatch.db.records.hosts import FleetWorker, HostDevice, HostState, Launch
from compilewatch.db.records.people import TriageState
from compilewatch.db.records.requests import (
    Firing,
    FiringOutcome,
    RequestKind,
    RequestSpec,
    RequestState,
    RunStatus,
    ScheduleSpec,
)
from compilewatch.db.records.trial import Build, Trial
from compilewatch.db.service.fleet import claim_launch, end_launch
from compilewatch.db.service.hosts import save_host
from compilewatch.db.service.recording import record_comparison, triage
from compilewatch.db.service.regressions import standing_regressions
from compilewatch.db.service.requests import end_request, new_request, save_request, take_request
from compilewatch.db.service.schedules import claim_firing, note_next_runs, pause_schedule, save_schedule
from compilewatch.db.store.trials import end_run, save_trials, start_run
from compilewatch.db.verdicts.gateway import compare
from tests.builders import MS, make_build, make_history, make_machine
from tests.dashboard.conftest import DATABASE

WORKLOADS = ("bert-base", "resnet-50", "mlp", "elementwise", "gpt2-generate-128-tokens")
STRATEGIES = ("eager", "default", "default+dynamic", "reduce-overhead", "max-autotune")
_SHARES = {
    "eager": 1.0,
    "default": 0.71,
    "default+dynamic": 0.78,
    "reduce-overhead": 0.6,
    "max-autotune": 0.52,
}
_RUNS = 24


def fill(url: str, now: datetime) -> None:
    """Three weeks of nightly runs up to `now` on a GPU box, a CPU box beside it, and what people did."""
    with open_database(url, migrate=True) as database:
        save_trials(database, [*_nightly(now), *_on_a_cpu(now)])
        _announce(database, now)
        _regressions(database, now)
        _service(database, now)
        _fleet(database, now)
    _reports(url, now)


def _builds() -> list[Build | str]:
    older, old, new = (
        make_build("2.11.0"),
        make_build("2.12.1", driver="570.124.06"),
        make_build("2.13.0", driver="580.65.06", cuda="13.0"),
    )
    return [older] * 8 + [old] * 8 + [new] * (_RUNS - 16)


def _nightly(now: datetime) -> list[Trial]:
    def latency_ns(workload: str, strategy: str, run: int) -> float:
        share = _SHARES[strategy]
        if workload == "elementwise" and strategy != "eager":
            share = 1.04
        if run >= 16 and workload == "bert-base" and strategy.startswith("default"):
            share *= 1.18
        if run >= 16 and workload == "mlp" and strategy == "max-autotune":
            share *= 0.9
        return 12 * MS * (1 + WORKLOADS.index(workload)) * share

    return make_history(
        workloads=WORKLOADS,
        strategies=STRATEGIES,
        builds=_builds(),
        latency_ns=latency_ns,
        failures=[("resnet-50", "max-autotune", _RUNS - 1)],
        between_trials=0.006,
        start=now - timedelta(days=_RUNS - 1, hours=6),
    )


def _on_a_cpu(now: datetime) -> list[Trial]:
    return make_history(
        workloads=("mlp",),
        strategies=("eager", "default"),
        builds=(make_build("2.13.0", cuda=None, torch_variant="cpu"),),
        machines=(make_machine("cpu-box", device="cpu"),),
        start=now - timedelta(days=9),
        seed=5,
    )


def _announce(database: Database, now: datetime) -> None:
    last = f"run-gpu-box-3-0-{_RUNS - 1:04d}"
    for number in range(_RUNS - 4, _RUNS):
        run_id = f"run-gpu-box-3-0-{number:04d}"
        began = now - timedelta(days=_RUNS - 1 - number, hours=6)
        start_run(
            database,
            run_id=run_id,
            suite="standard",
            label="nightly",
            started_at=began,
            planned_trials=len(WORKLOADS) * len(STRATEGIES) * (3 if run_id != last else 5),
        )
        if run_id != last:
            status = RunStatus.CANCELLED if number == _RUNS - 3 else RunStatus.FINISHED
            end_run(database, run_id, began + timedelta(hours=1), status)
    start_run(
        database,
        run_id="run-just-announced",
        suite="smoke",
        label="before the release of Friday",
        started_at=now - timedelta(minutes=2),
        planned_trials=36,
    )


def _regressions(database: Database, now: datetime) -> None:
    trials = trials_frame(database)
    on_gpu = trials[trials["machine"] == "gpu-box-3"]
    base, head = (
        Selection(name=torch, build_ids=tuple(on_gpu.loc[on_gpu["torch"] == torch, "build_id"].unique()))
        for torch in ("2.12.1", "2.13.0")
    )
    record_comparison(database, compare(database, base, head), at=now - timedelta(hours=5))
    said = (
        (
            TriageState.ACKNOWLEDGED,
            "Grace Hopper",
            "Bisecting the nightlies.",
            "https://example.org/issues/4711",
        ),
        (TriageState.CONFIRMED, "the service", "Five fresh trials a side show it again.", None),
        (TriageState.EXPECTED, "Ada Lovelace", "The new default of the kernel is wanted.", None),
    )
    for each, (state, author, note, url) in zip(standing_regressions(database), said, strict=False):
        event = TriageEvent(state=state, author=author, at=now - timedelta(hours=2), note=note, url=url)
        triage(database, each.regression.regression_id, event)


def _service(database: Database, now: datetime) -> None:
    for name, cron, suite in (("nightly", "0 2 * * *", "standard"), ("weekly-full", "0 4 * * 0", "full")):
        save_schedule(database, name, ScheduleSpec(cron=cron, suite=suite, machine="gpu-box-3"), at=now)
    hours = [timedelta(hours=20 + 24 * number) for number in range(5)]
    note_next_runs(database, "nightly", [now + each for each in hours])
    pause_schedule(database, "weekly-full", by="Ada Lovelace", at=now - timedelta(days=1))
    requests = (
        (
            "confirm",
            RequestKind.CONFIRMATION,
            RequestSpec(cases=(("bert-base", "default"),), machine="gpu-box-3"),
        ),
        ("asked", RequestKind.MANUAL, RequestSpec(suite="smoke", label="before the release of Friday")),
        ("done", RequestKind.UPGRADE, RequestSpec(suite="standard", builds=("torch-2.13.0",))),
    )
    for request_id, kind, spec in reversed(requests):
        asked = new_request(
            request_id, kind, spec, by="Ada Lovelace", at=now - timedelta(hours=3), note="please"
        )
        save_request(database, asked)
        if request_id == "done":
            take_request(database, owner="gpu-box-3", at=now - timedelta(hours=2), fits=lambda _: True)
            state = RequestState.FINISHED
            end_request(database, request_id, state, owner="gpu-box-3", at=now - timedelta(hours=1))
    firing = Firing(
        schedule="nightly",
        fire_at=now - timedelta(hours=6),
        owner="gpu-box-3",
        claimed_at=now - timedelta(hours=6),
        outcome=FiringOutcome.QUEUED,
        firings=1,
    )
    claim_firing(database, firing, None)
    save_host(database, _host("gpu-box-3", now))
    save_host(database, _host("gpu-box-4", now - timedelta(hours=7)))


def _fleet(database: Database, now: datetime) -> None:
    workers = [
        FleetWorker(
            owner=f"{host}:{pid}",
            queue="nvidia-h200",
            host=host,
            served="GPU 0",
            started_at=now - timedelta(hours=started),
            seen_at=now - timedelta(seconds=2),
            stopped_at=now if stopped else None,
            measured=measured,
        )
        for host, pid, started, stopped, measured in (
            ("node-7", 4711, 2, False, 41),
            ("node-8", 902, 5, True, 50),
        )
    ]
    with database.write() as connection:
        connection.execute(insert(FLEET_WORKER), [each.model_dump() for each in workers])
    for number, (queue, minutes, code, output) in enumerate(
        (
            ("nvidia-h200", 130, 0, "Submitted batch job 81234"),
            ("nvidia-h200", 6, 0, "Submitted batch job 81240"),
            (
                "nvidia-a100",
                4,
                1,
                "sbatch: error: invalid partition specified: a100-idle\nsbatch: error: 1 of 1",
            ),
        )
    ):
        at = now - timedelta(minutes=minutes)
        due = at + timedelta(hours=1)
        launch = Launch(launch_id=str(number), queue=queue, host="login-1", launched_at=at, worker_due_at=due)
        claim_launch(database, launch, lambda *_: True, stalled_s=30.0, alive_after=now)
        ended = at + timedelta(seconds=1)
        end_launch(database, launch.launch_id, at=ended, exit_code=code, output=output)


def _host(name: str, now: datetime) -> HostState:
    device = HostDevice(
        name="NVIDIA H200",
        temperature_c=34.0,
        power_w=76.0,
        power_limit_w=700.0,
        utilization_percent=0.0,
        used_bytes=1 << 30,
        total_bytes=150_754_820_096,
    )
    return HostState(
        name=name,
        owner=f"{name}:4711",
        started_at=now - timedelta(days=3),
        seen_at=now - timedelta(seconds=20),
        program_version="0.1.0",
        free_bytes=512 << 30,
        total_bytes=2 << 40,
        devices=(device,),
        devices_read_at=now - timedelta(seconds=20),
    )


def _reports(url: str, now: datetime) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(os.environ, DATABASE, url)
        for link, title in (
            ("trends?focus=bert-base&metric=latency", "Latency of bert-base before the upgrade"),
            ("break-even?focus=mlp", None),
        ):
            store_report(url, freeze_link(link, title=title, by="Ada Lovelace", at=now.astimezone(UTC)))
