"""Notices a torch or a driver that this host has never measured, without importing torch."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from dataclasses import dataclass
from datetime import datetime

from db.identities import identity
from db.queries.schedule import measured_stacks
from db.requests import RequestKind, RequestSpec, RunRequest
from db.session import Database
from db.store_request import new_request, save_request
from runner.config import BuildSettings, Settings
from runner.device_state import device_facts

_LOG = logging.getLogger("compilewatch.schedule")
_TIMEOUT_S = 20.0

# torch/version.py is what `torch.__version__` is read from; the metadata of a wheel may lack its +cu130.
_PROBE = """
import importlib.util, json, runpy, sys
found = importlib.util.find_spec("torch")
folder = found.submodule_search_locations[0] if found else None
sys.stdout.write(json.dumps(str(runpy.run_path(folder + "/version.py")["__version__"]) if folder else None))
"""


@dataclass(frozen=True)
class Fingerprint:
    """What decides whether measured numbers still hold: the release of torch and the driver beneath it."""

    torch: str
    driver: str | None

    def __str__(self) -> str:
        return f"torch {self.torch}" + (f" on driver {self.driver}" if self.driver else "")


def request_where_changed(
    database: Database, settings: Settings, *, host: str, owner: str, at: datetime
) -> RunRequest | None:
    """Queue the suite of [run] on all builds of this host where one of them was never measured here.

    The request's id follows from what is new, so that neither another service nor the next hour asks again.
    None where nothing is new, or nothing was ever measured on this host. Raises DatabaseError.
    """
    known = measured_stacks(database, host)
    if not known:
        return None
    # Where only the CPU was ever measured, the driver of a GPU decides nothing.
    on_gpu = any(driver for _, driver in known)
    new = [
        found for found in fingerprints(settings, on_gpu=on_gpu) if (found.torch, found.driver) not in known
    ]
    if not new:
        return None
    suite = settings.run.suite
    names = sorted(str(found) for found in new)
    key = identity({"host": host, "suite": suite, "stacks": names})
    request = new_request(
        f"upgrade-{key}",
        RequestKind.UPGRADE,
        RequestSpec(suite=suite, machine=host),
        by=owner,
        at=at,
        note=f"never measured on {host}: {', '.join(names)}",
    )
    if not save_request(database, request):
        return None
    _LOG.info("New on this host: %s. Suite %s is queued.", ", ".join(names), suite)
    return request


def fingerprints(settings: Settings, *, on_gpu: bool) -> list[Fingerprint]:
    """Of every configured build, of this interpreter where there is none; those without torch left out."""
    driver = device_facts("cuda:0").driver if on_gpu else None
    found = [_installed_torch(build) for build in settings.builds] or [_installed_torch(None)]
    return list(dict.fromkeys(Fingerprint(torch, driver) for torch in found if torch))


def _installed_torch(build: BuildSettings | None) -> str | None:
    """The release of torch behind an interpreter; None, and a line in the log, where there is none."""
    python = str(build.python) if build else sys.executable
    try:
        answer = subprocess.run(
            [python, "-I", "-c", _PROBE], capture_output=True, text=True, timeout=_TIMEOUT_S, check=True
        ).stdout
        torch: str | None = json.loads(answer)
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        _LOG.warning("The torch of %s cannot be read: %s", python, error)
        return None
    return torch
