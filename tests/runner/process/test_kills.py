"""The runner killed at random moments: what it reported is stored once and whole, nothing runs on."""

from __future__ import annotations

import random
import subprocess
import time
from pathlib import Path

import psutil
import pytest

from db.engine.session import open_database
from db.errors import DatabaseError
from db.queries.filters import Filters
from db.queries.trials import trial_records
from db.records.trial import Trial
from runner.storage.spool import Spool
from tests.runner.terminal import COMMAND, compilewatch, environment

KILLS = 50
LONGEST_S = 12.0

MINE = """
import torch

def gelu():
    return torch.nn.functional.gelu, (torch.ones(64, 64),)
"""


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_fifty_kills_lose_nothing_that_was_reported(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(MINE, encoding="utf-8")
    (tmp_path / "compilewatch.toml").write_text("[run]\nsamples = 10\n", encoding="utf-8")
    scratch = tmp_path / "tmp"
    scratch.mkdir()
    chance = random.Random(20261120)
    reported = 0
    for _ in range(KILLS):
        reported += _killed_run(tmp_path, scratch, chance.uniform(0.5, LONGEST_S))
        _expect_no_worker(scratch)
        kept = len(_stored(tmp_path)) + len(Spool(tmp_path / ".compilewatch" / "spool").waiting())
        assert kept >= reported
    last = compilewatch(
        *("run", "-w", "mine:gelu", "-s", "eager", "--trials", "1"), cwd=tmp_path, TMPDIR=str(scratch)
    )
    assert last.returncode == 0, last.stderr
    trials = _stored(tmp_path)
    assert len(trials) >= reported + 1
    assert len({trial.trial_id for trial in trials}) == len(trials)
    assert all(trial.failure is not None or len(trial.samples_ns) == 10 for trial in trials)
    assert Spool(tmp_path / ".compilewatch" / "spool").waiting() == []
    assert reported > KILLS // 4, "the kills came too early to test anything"


def _killed_run(project: Path, scratch: Path, after_s: float) -> int:
    """Start a run, kill it after `after_s` seconds, and return how many trials it had reported."""
    with subprocess.Popen(
        [*COMMAND, "run", "-w", "mine:gelu", "-s", "eager", "--trials", "5"],
        cwd=project,
        env=environment(TMPDIR=str(scratch)),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        time.sleep(after_s)
        process.kill()
        _, error = process.communicate(timeout=30)
    return sum(line.startswith("[") for line in error.splitlines())


def _stored(project: Path) -> list[Trial]:
    try:
        with open_database(f"sqlite:///{project / 'compilewatch.db'}", read_only=True) as database:
            return list(trial_records(database, Filters()))
    except DatabaseError as error:
        assert "There is no database" in error.message  # noqa: PT017
        return []


def _expect_no_worker(scratch: Path, within_s: float = 15) -> None:
    deadline = time.monotonic() + within_s
    while left := _workers(scratch):
        assert time.monotonic() < deadline, f"orphans: {left}"
        time.sleep(0.1)


def _workers(scratch: Path) -> list[str]:
    """Command lines of processes that live in `scratch`, as a trial's processes do."""
    found = []
    for process in psutil.process_iter():
        try:
            if str(scratch) in process.environ().get("TMPDIR", ""):
                found.append(" ".join(process.cmdline()))
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
    return found
