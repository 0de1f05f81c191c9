"""Runs, machines, schedules and the queue as rows of tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import pandas as pd

from dashboard.shaping import joined, number, row_dicts
from db import units
from db.requests import RequestSpec, RunRequest
from db.runs import RunStatus
from db.schedules import Firing, Schedule

SILENT_AFTER = timedelta(hours=1)
"""A run that claims to be running and stored nothing for so long may have been killed."""

_STATES = {
    RunStatus.RUNNING.value: "▶ running",
    RunStatus.FINISHED.value: "✓ finished",
    RunStatus.CANCELLED.value: "✗ cancelled",
}
_NOT_ANNOUNCED = "↓ imported"


def run_rows(
    runs: pd.DataFrame, parts: pd.DataFrame, machines: Mapping[str, str], builds: Mapping[str, str]
) -> pd.DataFrame:
    """One row per run, in the order given, with its machine and build by name and its progress.

    `progress` is the share of the planned trials that are stored, in percent; missing where none was planned.
    """
    by_run: dict[str, list[dict[str, Any]]] = {}
    for part in row_dicts(parts):
        by_run.setdefault(part["run_id"], []).append(part)
    rows = []
    for run in row_dicts(runs):
        mine = by_run.get(run["run_id"], [])
        where = {
            "machine_id": mine[0]["machine_id"] if mine else None,
            "machine": _names(machines, [part["machine_id"] for part in mine]),
            "build": _names(builds, [part["build_id"] for part in mine]),
        }
        rows.append(_run_row(run) | where)
    return pd.DataFrame(rows)


def _names(names: Mapping[str, str], ids: Sequence[str]) -> str | None:
    return joined(names.get(each, each) for each in dict.fromkeys(ids)) if ids else None


def _run_row(run: Mapping[str, Any]) -> dict[str, Any]:
    planned, stored = number(run["planned_trials"]), float(run["trials"])
    status = run["status"] if isinstance(run["status"], str) else None
    return {
        "run_id": run["run_id"],
        "started_at": run["started_at"],
        "last_seen_at": run["last_seen_at"],
        "state": _STATES[status] if status else _NOT_ANNOUNCED,
        "running": status == RunStatus.RUNNING.value,
        "suite": run["suite"],
        "label": run["label"],
        "trials": int(stored),
        "planned": None if planned is None else int(planned),
        "failed": int(run["failed_trials"]),
        "progress": min(100.0, 100 * stored / planned) if planned else None,
    }


def progress_words(row: Mapping[str, Any], now: datetime) -> str:
    """What a running run has done so far, and whether it has fallen silent."""
    planned = number(row["planned"])
    wanted = f" of {units.count(planned)}" if planned is not None else ""
    said = f"{row['suite'] or 'no suite'}: {units.count(row['trials'])}{wanted} trials"
    if row["failed"]:
        said += f", {units.count(row['failed'])} failed"
    last = row["started_at"] if pd.isna(row["last_seen_at"]) else row["last_seen_at"]
    if now - last > SILENT_AFTER:
        hours = int((now - last) / timedelta(hours=1))
        said += f"; nothing new for {units.plural(hours, 'hour')}, it may have been killed"
    return said


def machine_rows(machines: pd.DataFrame) -> pd.DataFrame:
    """One row per machine, the one seen last first."""
    rows = [
        {
            "machine": row["machine"],
            "device": row["device_name"],
            "cpu": row["cpu_name"],
            "threads": row["threads"],
            "memory": units.size(number(row["ram_bytes"])),
            "device_memory": units.size(number(row["device_memory_bytes"])),
            "trials": int(row["trials"]),
            "failed": int(row["failed_trials"]),
            "first_seen_at": row["first_seen_at"],
            "last_seen_at": row["last_seen_at"],
            "machine_id": row["machine_id"],
        }
        for row in row_dicts(machines.sort_values("last_seen_at", ascending=False))
    ]
    return pd.DataFrame(rows)


def schedule_rows(schedules: Sequence[Schedule], last: Mapping[str, Firing]) -> pd.DataFrame:
    """One row per schedule."""
    return pd.DataFrame(
        [
            {
                "name": schedule.name,
                "cron": schedule.spec.cron,
                "timezone": schedule.spec.timezone,
                "suite": schedule.spec.suite,
                "machine": schedule.spec.machine or "any",
                "state": "‖ paused" if schedule.paused else "▶ active",
                "next_run_at": schedule.next_run_at,
                "last_fired_at": last[schedule.name].fire_at if schedule.name in last else None,
                "outcome": last[schedule.name].outcome.value if schedule.name in last else None,
            }
            for schedule in schedules
        ]
    )


def request_rows(requests: Sequence[RunRequest]) -> pd.DataFrame:
    """One row per run request, in the order given."""
    return pd.DataFrame(
        [
            {
                "state": request.state.value,
                "kind": request.kind.value,
                "what": request_words(request.spec),
                "machine": request.spec.machine or "any",
                "asked_by": request.asked_by,
                "asked_at": request.asked_at,
                "owner": request.owner,
                "note": request.history[-1].note if request.history else None,
                "request_id": request.request_id,
            }
            for request in requests
        ]
    )


def request_words(spec: RequestSpec) -> str:
    """What a request wants measured."""
    parts = [f"suite {spec.suite}"] if spec.suite else []
    parts += (
        [joined(f"{workload} with {strategy}" for workload, strategy in spec.cases)] if spec.cases else []
    )
    parts += [joined(spec.workloads)] if spec.workloads else []
    parts += [f"with {joined(spec.strategies)}"] if spec.strategies else []
    parts += [f"on {joined(spec.builds)}"] if spec.builds else []
    return ", ".join(parts) or "everything configured"
