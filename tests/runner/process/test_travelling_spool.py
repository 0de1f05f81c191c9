"""Trials of a host that reaches no database: written to a directory, imported elsewhere, nothing lost."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
from pathlib import Path

import pytest
from sqlalchemy import select

from compilewatch.db.engine.session import Database, open_database
from compilewatch.db.engine.tables import RUN
from compilewatch.db.queries.records import trial_records
from compilewatch.db.queries.selection import Filters
from compilewatch.db.records.requests import RunStatus
from compilewatch.db.records.trial import Trial, parse_trial
from tests.runner.fleet_processes import wait_until
from tests.runner.quick_measurement import configuration, interpreter
from tests.runner.terminal import COMMAND, environment, in_this_process

AWAY = "postgresql://nobody@127.0.0.1:9/none"


def node(directory: Path, *, seconds: float = 0.02, rounds: int = 3) -> dict[str, str]:
    """The environment of a host whose configuration names a directory, and a database that is not there."""
    python = interpreter(directory / "build", seconds=seconds)
    spool = directory / "spool"
    more = f'[fleet]\nspool_dir = "{spool}"\n'
    config = configuration(directory, python, more, rounds=rounds)
    return {"COMPILEWATCH_CONFIG": str(config), "COMPILEWATCH_DATABASE_URL": AWAY}


def files_of(spool: Path) -> list[Trial]:
    return [parse_trial(path.read_bytes(), where=path.name) for path in sorted(spool.glob("*.json"))]


def runs_of(database: Database) -> list[dict[str, object]]:
    names = ("run_id", "suite", "label", "started_at", "ended_at", "planned_trials", "status", "trials")
    with database.read() as connection:
        rows = connection.execute(select(*(RUN.c[name] for name in names)).order_by(RUN.c.run_id))
        return [dict(row) for row in rows.mappings()]


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of two runs of a host without a database, for tests to read and to copy."""
    directory = tmp_path_factory.mktemp("node")
    variables, spool = node(directory), directory / "spool"
    for label in ("monday", "tuesday"):
        ran = in_this_process("run", "--label", label, cwd=directory, **variables)
        assert ran.returncode == 0, ran.stderr
        assert f"compilewatch import {spool}" in ran.stderr
    return spool


@pytest.fixture
def spool(measured: Path, tmp_path: Path) -> Path:
    """A copy to spoil."""
    return Path(shutil.copytree(measured, tmp_path / "spool"))


def imported(spool: Path, tmp_path: Path) -> subprocess.CompletedProcess[str]:
    return in_this_process("import", str(spool), "--db", f"sqlite:///{tmp_path / 'team.db'}", cwd=tmp_path)


def test_what_a_host_without_a_database_measured_comes_in_exactly(spool: Path, tmp_path: Path) -> None:
    written = files_of(spool)
    assert len(written) == 6
    url = f"sqlite:///{tmp_path / 'team.db'}"
    for line in (
        f"{spool} (trial) brought 6 trials.",
        f"{spool} (trial) brought 0 trials, 6 were there already.",
    ):
        got = imported(spool, tmp_path)
        assert got.returncode == 0, got.stderr
        assert got.stdout.startswith(line.partition(",")[0].rstrip(".")), got.stdout
        with open_database(url) as database:
            assert sorted(trial_records(database, Filters()), key=lambda each: each.trial_id) == written
            first, second = runs_of(database)
            for run, label in ((first, "monday"), (second, "tuesday")):
                announced = json.loads((spool / "runs" / f"{run['run_id']}.json").read_text())
                assert {name: announced[name] for name in ("suite", "label", "planned_trials")} == {
                    "suite": "quick",
                    "label": label,
                    "planned_trials": 3,
                }
                assert (run["label"], run["planned_trials"], run["trials"]) == (label, 3, 3)
                assert run["status"] is RunStatus.FINISHED
                assert run["started_at"] < run["ended_at"]  # type: ignore[operator]
    assert files_of(spool) == written


def test_what_a_killed_run_had_measured_comes_in(tmp_path: Path) -> None:
    variables = node(tmp_path / "node", seconds=0.5, rounds=50)
    spool = tmp_path / "node" / "spool"
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(
            [*COMMAND, "run"], cwd=tmp_path, env=environment(**variables), stdout=log, stderr=log
        )
    wait_until(lambda: len(files_of(spool)) >= 2, 60, (tmp_path / "log").read_text())
    process.send_signal(signal.SIGKILL)
    process.wait()
    written = files_of(spool)
    url = f"sqlite:///{tmp_path / 'team.db'}"
    assert imported(spool, tmp_path).returncode == 0
    with open_database(url) as database:
        (run,) = runs_of(database)
        assert (run["status"], run["trials"], run["planned_trials"]) == (RunStatus.RUNNING, len(written), 50)


@pytest.mark.parametrize("content", ["{}", "nothing", '{"run_id": "../x"}'])
def test_a_file_that_announces_no_run_is_a_sentence(content: str, spool: Path, tmp_path: Path) -> None:
    (spool / "runs" / "other.json").write_text(content, encoding="utf-8")
    got = imported(spool, tmp_path)
    assert got.returncode == 2
    assert "announces no run" in got.stderr
    assert "Traceback" not in got.stderr


END = {"ended_at": "2026-11-20T10:00:00+00:00", "status": "cancelled"}


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("ends/config.json", {"credHelpers": {}}, "no end of a run"),
        ("ends/LIVE.json", END, "does not begin there"),
        ("ends/RUN.json", {**END, "ended_at": "9999-12-31T00:00:00+00:00"}, "not yet"),
    ],
)
def test_a_directory_moves_no_file_and_ends_no_other_run(
    name: str, content: dict[str, object], said: str, spool: Path, tmp_path: Path
) -> None:
    run = min(path.stem for path in (spool / "runs").glob("*.json"))
    others = tmp_path / "others"
    others.mkdir()
    (others / "config.json").write_text("theirs", encoding="utf-8")
    (spool / "bad").symlink_to(others)
    file = spool / name.replace("RUN", run)
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps(content), encoding="utf-8")
    got = imported(spool, tmp_path)
    assert got.returncode == 2
    assert said in got.stderr
    assert (others / "config.json").read_text(encoding="utf-8") == "theirs"
    assert file.exists()
    with open_database(f"sqlite:///{tmp_path / 'team.db'}") as database:
        assert RunStatus.CANCELLED not in [each["status"] for each in runs_of(database)]


def test_a_link_announces_no_run(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "a.json").symlink_to(tmp_path / "nowhere")
    got = imported(tmp_path, tmp_path)
    assert got.returncode == 2
    assert "Traceback" not in got.stderr


def test_a_worker_needs_a_database(tmp_path: Path) -> None:
    got = in_this_process("worker", "--gpu", "cpu", cwd=tmp_path, **node(tmp_path / "node"))
    assert got.returncode == 2
    assert "Measure with `compilewatch run`" in got.stderr
