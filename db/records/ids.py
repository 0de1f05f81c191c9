"""What makes two machines, builds, workloads, strategies or series the same one."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from compilewatch.db.records.fields import Record
from compilewatch.db.records.trial import Build, Machine, Strategy, Trial, Workload


def identity(content: dict[str, Any]) -> str:
    """First 16 hex digits of the SHA-256 of `content` as canonical JSON."""
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(canonical.encode()).hexdigest()[:16]


def machine_identity(machine: Machine) -> str:
    """All fields but the machine's name and its device's serial."""
    return _part_identity(machine, without={"name", "device_uuid"})


def build_identity(build: Build) -> str:
    """The software stack: all fields but the label that people gave it, and the settings, which a suite or a
    strategy chose.
    """
    return _part_identity(build, without={"label", "settings"})


def recorded_build_identity(build: Build) -> str:
    """With the settings, as releases before 2 named builds: what they stored and imported is known by it."""
    return _part_identity(build, without={"label"})


def conditions_identity(build: Build) -> str:
    """The settings that a trial was measured under."""
    return _part_identity(build, without=set(Build.model_fields) - {"settings"})


def workload_identity(workload: Workload) -> str:
    """All fields but the reason: another version or size is another workload."""
    return _part_identity(workload, without={"reason"})


def strategy_identity(strategy: Strategy) -> str:
    """All fields but the reason."""
    return _part_identity(strategy, without={"reason"})


def series_identity(trial: Trial) -> str:
    """The history of one case on one machine: machine + workload + strategy."""
    return identity(
        {
            "machine": machine_identity(trial.machine),
            "workload": workload_identity(trial.workload),
            "strategy": strategy_identity(trial.strategy),
        }
    )


def _part_identity(part: Record, *, without: set[str] | None = None) -> str:
    """Fields at their default are left out, so that one which a later release adds splits no series."""
    return identity(part.model_dump(mode="json", exclude=without, exclude_defaults=True))
