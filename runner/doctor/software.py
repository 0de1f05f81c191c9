"""torch, compiler, places on disk, database and clock."""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from compilewatch.db.engine.session import open_database
from compilewatch.db.errors import CompilewatchError, DatabaseError
from compilewatch.db.units import plural, size
from compilewatch.runner.config.settings import Settings
from compilewatch.runner.device.host import MIN_FREE_BYTES, existing_part
from compilewatch.runner.plan.host_stacks import compiler_version
from compilewatch.runner.plan.interpreter import InterpreterFacts
from compilewatch.runner.storage.spool import Spool

_WARN_BYTES = 2 * 2**30


def torch_finding(facts: InterpreterFacts | CompilewatchError) -> DoctorFinding:
    """The torch of this interpreter, and the device it can use."""
    if isinstance(facts, CompilewatchError):
        return fail("torch", facts.message.rstrip("."), facts.next_step)
    built_for = f"CUDA {facts.cuda}" if facts.cuda else f"ROCm {facts.hip}" if facts.hip else "the CPU"
    devices = plural(facts.device_count, "GPU") if facts.device_count else "no GPU"
    return ok("torch", f"{facts.torch} for {built_for}, Python {facts.python}, {devices}")


def compiler_finding(environment: Mapping[str, str] = os.environ) -> DoctorFinding:
    """The C++ compiler that Inductor needs, on a GPU too."""
    compiler = compiler_version(environment)
    if compiler is None:
        return fail("compiler", "no C++ compiler on the PATH", "Install one (Debian: apt-get install g++).")
    return ok("compiler", compiler)


def headers_finding(include: Path = Path(sysconfig.get_path("include"))) -> DoctorFinding:  # noqa: B008
    """The headers of this Python: Inductor's kernels for a CPU and Triton's launchers include `Python.h`."""
    if not (include / "Python.h").is_file():
        package = f"python{sys.version_info.major}.{sys.version_info.minor}-dev"
        return fail(
            "Python headers",
            f"no Python.h in {include}",
            f"Install them (Debian: apt-get install {package}).",
        )
    return ok("Python headers", str(include))


def place_finding(subject: str, directory: Path, *, runs_code: bool) -> DoctorFinding:
    """Whether `directory` can be written, has room, and, for compiled kernels, lets them be loaded."""
    existing = existing_part(directory)
    if not os.access(existing, os.W_OK | os.X_OK):
        return fail(subject, f"{directory} cannot be written", "Make it writable, or name another directory.")
    if runs_code and os.statvfs(existing).f_flag & os.ST_NOEXEC:
        return fail(
            subject, f"{directory} is mounted noexec, so no kernel loads from it", "Set TMPDIR elsewhere."
        )
    free = shutil.disk_usage(existing).free
    fact = f"{directory}, {size(free)} free"
    if free < MIN_FREE_BYTES:
        return fail(subject, fact, "Free space, or name a directory on another disk.")
    if free < _WARN_BYTES:
        return warn(subject, fact, "A cold compilation may fill it; free space.")
    return ok(subject, fact)


def spool_finding(settings: Settings) -> DoctorFinding:
    """Trials on disk that the database has not got yet."""
    spool = Spool(settings.data_dir / "spool")
    waiting, bad = len(spool.waiting()), len(list(spool.directory.glob("bad/*.json")))
    if bad:
        return warn(
            "spool",
            f"{plural(bad, 'trial')} set aside, {waiting} waiting",
            f"Each has its reason beside it in {spool.directory / 'bad'}.",
        )
    if waiting:
        return warn(
            "spool", f"{plural(waiting, 'trial')} waiting", "The next `compilewatch run` stores them."
        )
    return ok("spool", "no trial waits for the database")


def database_finding(settings: Settings) -> DoctorFinding:
    """Whether the configured database opens and has this release's schema."""
    url = settings.database_url
    name = url.partition("sqlite:///")[2]
    if name and not Path(name).exists():
        return ok("database", f"{name} is not there yet", "The first `compilewatch run` creates it.")
    try:
        with open_database(url, read_only=True) as database:
            return ok("database", f"{database.url} has this release's schema")
    except DatabaseError as error:
        # What only has to be upgraded keeps nothing from being measured: a run upgrades it.
        standing = warn if "db upgrade" in error.next_step else fail
        return standing("database", error.message.rstrip("."), error.next_step)


def time_finding() -> DoctorFinding:
    """The zone in which schedules are written; records are in UTC whatever it is."""
    here = time.localtime()
    hours = (here.tm_gmtoff or 0) / 3600
    return ok("time zone", f"{here.tm_zone} (UTC{hours:+g}); trials are stored in UTC")


def software_findings(settings: Settings, facts: InterpreterFacts | CompilewatchError) -> list[DoctorFinding]:
    """Everything that is installed or configured."""
    configuration = settings.config_file
    return [
        torch_finding(facts),
        compiler_finding(),
        headers_finding(),
        place_finding("cache directory", Path(tempfile.gettempdir()), runs_code=True),
        place_finding("data directory", settings.data_dir.absolute(), runs_code=False),
        ok("configuration", str(configuration) if configuration else "defaults; no compilewatch.toml here"),
        database_finding(settings),
        spool_finding(settings),
        time_finding(),
        ok("interpreter", sys.executable),
    ]


class Standing(StrEnum):
    """`warn`: figures may be noisier or fewer than they could be. `fail`: nothing can be measured."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True)
class DoctorFinding:
    """`fact` is one phrase without a full stop; `next_step` is empty where there is nothing to do."""

    subject: str
    standing: Standing
    fact: str
    next_step: str = ""


def ok(subject: str, fact: str, next_step: str = "") -> DoctorFinding:
    """Nothing to do, unless `next_step` says what would still help."""
    return DoctorFinding(subject, Standing.OK, fact, next_step)


def warn(subject: str, fact: str, next_step: str) -> DoctorFinding:
    """Measuring works, and something makes its figures worse or unknown."""
    return DoctorFinding(subject, Standing.WARN, fact, next_step)


def fail(subject: str, fact: str, next_step: str) -> DoctorFinding:
    """Nothing can be measured or stored before this is mended."""
    return DoctorFinding(subject, Standing.FAIL, fact, next_step)
