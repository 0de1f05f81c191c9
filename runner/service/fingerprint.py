"""Notices a torch or a driver that this host has never measured, without importing torch."""

from __future__ import annotations

import logging
import subprocess
import sys
from dataclasses import astuple, dataclass
from datetime import datetime

from compilewatch.db.engine.session import Database
from compilewatch.db.records.ids import identity
from compilewatch.db.records.requests import RequestKind, RequestSpec, RunRequest
from compilewatch.db.service.requests import new_request, save_request
from compilewatch.db.service.schedules import measured_stacks
from compilewatch.runner.config.settings import BuildSettings, Settings
from compilewatch.runner.device.state import device_facts
from compilewatch.runner.plan.host_stacks import torch_facts

_LOG = logging.getLogger("compilewatch.schedule")


@dataclass(frozen=True)
class Fingerprint:
    """What decides whether measured numbers still hold, as a build of a trial has it."""

    torch: str
    torch_variant: str | None
    driver: str | None

    def __str__(self) -> str:
        variant = f" ({self.torch_variant})" if self.torch_variant else ""
        return f"torch {self.torch}{variant}" + (f" on driver {self.driver}" if self.driver else "")


def request_where_changed(
    database: Database, settings: Settings, *, host: str, machine: str, owner: str, at: datetime
) -> RunRequest | None:
    """Queue the suite of [run] where a build of this host was never measured on it, for all that are there.

    `machine` selects this host. The request's id follows from what is new, so that neither another process
    nor the next hour asks again. None where nothing is new, or nothing was ever measured on this host. Raises
    DatabaseError.
    """
    known = measured_stacks(database, host)
    if not known:
        return None
    # Where only the CPU was ever measured, the driver of a GPU decides nothing.
    builds = fingerprints(settings, on_gpu=any(driver for *_, driver in known))
    new = {fingerprint for fingerprint in builds.values() if astuple(fingerprint) not in known}
    if not new:
        return None
    suite = settings.run.suite
    names = sorted(map(str, new))
    key = identity({"host": host, "suite": suite, "stacks": names})
    # One that is gone would fail the others' request.
    is_partial = len(builds) < len(settings.builds)
    request = new_request(
        f"upgrade-{key}",
        RequestKind.UPGRADE,
        RequestSpec(suite=suite, machine=machine, builds=tuple(filter(None, builds)) if is_partial else ()),
        by=owner,
        at=at,
        note=f"never measured on {host}: {', '.join(names)}",
    )
    if not save_request(database, request):
        return None
    _LOG.info("New on this host: %s. Suite %s is queued.", ", ".join(names), suite)
    return request


def fingerprints(settings: Settings, *, on_gpu: bool) -> dict[str | None, Fingerprint]:
    """Of every configured build by name, of this interpreter as None where there is none.

    Those without a torch, or that cannot be asked, are left out.
    """
    driver = device_facts("cuda:0").driver if on_gpu else None
    by_name = {
        build.name if build else None: _installed_torch(build, driver) for build in settings.builds or (None,)
    }
    return {name: each for name, each in by_name.items() if each}


def _installed_torch(build: BuildSettings | None, driver: str | None) -> Fingerprint | None:
    """The torch behind an interpreter, None where there is none or it cannot be read, which is logged."""
    python = str(build.python) if build else sys.executable
    try:
        facts = torch_facts(python)
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        _LOG.warning("The torch of %s cannot be read: %s", python, error)
        return None
    return None if facts is None else Fingerprint(facts["release"], facts["variant"], driver)
