"""The compiler's own log of one case, and tlparse's report of it, kept below the data directory."""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
import sys
from datetime import datetime, timedelta
from pathlib import Path

from compilewatch.db.records.sampling_facts import Trace
from compilewatch.db.units import plural

_LOG = logging.getLogger("compilewatch.runner")
_TRACES = "traces"
_REPORT_FOLDER = "report"
REPORT = f"{_REPORT_FOLDER}/index.html"
"""First page of tlparse's report, below the directory of a trace."""
_TLPARSE_S = 300.0


def trace_directory(data_dir: Path, trial_id: str) -> Path:
    """Where the log of a trial lies; absolute, since another process writes it."""
    return data_dir.absolute() / _TRACES / trial_id


def trace_in(data_dir: Path, trial_id: str) -> Trace | None:
    """The log that was written for a trial, and its report where tlparse is installed; None without a log."""
    directory = trace_directory(data_dir, trial_id)
    logs = [path for path in directory.glob("*.log") if path.stat().st_size]
    if not logs:
        shutil.rmtree(directory, ignore_errors=True)
        return None
    root = data_dir.absolute()
    # Compile workers may write logs too; the measured process's is by far the longest.
    report = _report(max(logs, key=lambda path: path.stat().st_size), directory / _REPORT_FOLDER)
    return Trace(
        directory=directory.relative_to(root).as_posix(),
        size_bytes=sum(path.stat().st_size for path in directory.rglob("*") if path.is_file()),
        report=None if report is None else report.relative_to(root).as_posix(),
    )


def forget_traces(data_dir: Path, keep_days: int | None, now: datetime) -> int:
    """Delete the traces of this host that are older than `keep_days`: how many. None keeps all.

    The trial keeps saying how long its trace was and where it lay.
    """
    if keep_days is None:
        return 0
    until = (now - timedelta(days=keep_days)).timestamp()
    forgotten = 0
    for directory in (data_dir.absolute() / _TRACES).glob("*"):
        try:
            # A link leads to what is not ours to delete.
            if directory.is_dir() and not directory.is_symlink() and directory.stat().st_mtime < until:
                shutil.rmtree(directory)
                forgotten += 1
        except FileNotFoundError:
            continue
        except OSError as error:
            _LOG.warning("The trace %s cannot be deleted: %s.", directory, error.strerror)
    if forgotten:
        _LOG.info("Deleted %s older than %s.", plural(forgotten, "trace"), plural(keep_days, "day"))
    return forgotten


def tlparse_command() -> str | None:
    """The executable of tlparse: beside this Python, else on the PATH."""
    places = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    return shutil.which("tlparse", path=places)


def _report(log: Path, into: Path) -> Path | None:
    command = tlparse_command()
    if command is None:
        return None
    try:
        process = subprocess.run(
            [command, str(log), "-o", str(into), "--no-browser", "--overwrite"],
            capture_output=True,
            check=False,
            timeout=_TLPARSE_S,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        _LOG.warning("tlparse made no report of %s: %s", log, error)
        return None
    index = into / "index.html"
    if index.is_file():
        return index
    complaint = process.stderr.decode(errors="replace").strip().rpartition("\n")[2]
    _LOG.warning("tlparse made no report of %s: %s", log, complaint or f"exit code {process.returncode}")
    return None
