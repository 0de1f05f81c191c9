"""What was measured waits on disk until the database has it, and is stored once."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from compilewatch.db.engine.session import Database
from compilewatch.db.errors import CompilewatchError, ConflictError, DatabaseError
from compilewatch.db.records.requests import RunStatus
from compilewatch.db.records.trial import Trial
from compilewatch.db.service.requests import unended_runs
from compilewatch.db.store.trials import start_run
from compilewatch.runner.process.spool import Spool, note_end, store_waiting
from tests.builders import START, make_trial
from tests.runner.terminal import ROOT


def _ids(count: int) -> list[str]:
    return [f"01TRIAL{number:04d}" for number in range(count)]


def test_a_waiting_trial_is_the_one_that_was_put(tmp_path: Path) -> None:
    trial = make_trial()
    spool = Spool(tmp_path / "spool")
    spool.put(trial)
    seen: list[Trial] = []
    assert spool.replay(seen.append).stored == 1
    assert seen == [trial]
    assert spool.waiting() == []


def test_replay_keeps_the_order_of_ids(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    for trial_id in reversed(_ids(5)):
        spool.put(make_trial(trial_id=trial_id))
    seen: list[str] = []
    spool.replay(lambda trial: seen.append(trial.trial_id))
    assert seen == _ids(5)


def test_two_processes_may_replay_the_same_files(tmp_path: Path) -> None:
    spool, other = Spool(tmp_path), Spool(tmp_path)
    for trial_id in _ids(3):
        spool.put(make_trial(trial_id=trial_id))
    stored: list[str] = []

    def save(trial: Trial) -> None:
        stored.append(trial.trial_id)
        if len(stored) == 1:
            other.replay(lambda each: stored.append(each.trial_id))

    spool.replay(save)
    assert stored == [_ids(3)[0], *_ids(3)]
    assert spool.waiting() == []


def test_what_the_database_refused_waits(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    for trial_id in _ids(3):
        spool.put(make_trial(trial_id=trial_id))
    stored: list[str] = []

    def goes_away(trial: Trial) -> None:
        if len(stored) == 1:
            raise DatabaseError("The database is away.")
        stored.append(trial.trial_id)

    with pytest.raises(DatabaseError):
        spool.replay(goes_away)
    assert [path.stem for path in spool.waiting()] == _ids(3)[1:]
    spool.replay(lambda trial: stored.append(trial.trial_id))
    assert stored == _ids(3)


def test_a_broken_file_is_set_aside_with_its_reason(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    (tmp_path / "01AAA.json").write_text('{"schema": "compilewatch.trial/1"', encoding="utf-8")
    spool.put(make_trial(trial_id="01ZZZ"))
    seen: list[str] = []
    replay = spool.replay(lambda trial: seen.append(trial.trial_id))
    assert seen == ["01ZZZ"]
    assert [path.name for path in replay.rejected] == ["01AAA.json"]
    assert "01AAA.json" in (tmp_path / "bad" / "01AAA.reason.txt").read_text(encoding="utf-8")


def test_what_cannot_be_read_is_named_once_and_the_rest_is_stored(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    spool = Spool(tmp_path)
    (tmp_path / "ends").mkdir()
    for folder in (tmp_path, tmp_path / "ends"):
        (folder / "loop.json").symlink_to("loop.json")
        # Reading its beginning fails with EIO, as on a disk that fails.
        (folder / "fails.json").symlink_to("/proc/self/mem")
        (folder / "endless.json").symlink_to("/dev/zero")
        os.mkfifo(folder / "pipe.json")
    with (tmp_path / "large.json").open("wb") as large:
        large.truncate(2**32)
    (tmp_path / "no\nline\udcff.json").write_text("{")
    spool.put(make_trial(trial_id="01ZZZ"))
    spool.put_end("run", START, RunStatus.FINISHED)
    assert spool.size_bytes() > 0
    seen: list[str] = []
    replay = spool.replay(lambda trial: seen.append(trial.trial_id))
    assert seen == ["01ZZZ"]
    assert [run_id for run_id, _, _ in spool.waiting_ends()] == ["run"]
    assert len(replay.rejected) == 6
    assert len(caplog.messages) == 6 + 4
    for why in ("symbolic links", "Input/output error", "no plain file", "64 MiB"):
        assert why in caplog.text
    caplog.clear()
    spool.replay(lambda trial: seen.append(trial.trial_id))
    assert [run_id for run_id, _, _ in spool.waiting_ends()] == ["run"]
    assert (caplog.messages, seen) == ([], ["01ZZZ"])


AS_ANOTHER = """
import logging, os, sys
sys.path.insert(0, sys.argv[2])
from pathlib import Path
from compilewatch.runner.process.spool import Spool
import compilewatch.db.interchange.formats
spool = Spool(Path(sys.argv[1]))
logging.basicConfig(format="%(message)s")
os.setgroups([]); os.setgid(65531); os.setuid(65531)
for _ in range(2):
    print(spool.replay(lambda trial: print(trial.trial_id)).stored)
"""


@pytest.mark.skipif(os.getuid() != 0, reason="becoming another user needs root")
def test_another_user_s_file_is_left_aside(open_to_all: Path) -> None:
    spool = Spool(open_to_all / "spool")
    closed = spool.put(make_trial(trial_id="01AAA"))
    kept = spool.put(make_trial(trial_id="01BBB"))
    closed.chmod(0o600)
    kept.chmod(0o644)
    spool.directory.chmod(0o1777)
    command = [sys.executable, "-c", AS_ANOTHER, str(spool.directory), str(ROOT)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.stdout.split() == ["01BBB", "1", "0"], ran.stderr
    assert ran.stderr.count("01AAA.json is left where it is: It cannot be read (Permission denied).") == 1
    assert ran.stderr.count("01BBB.json is stored and cannot be removed") == 1
    assert spool.waiting() == [closed, kept]


def test_an_id_taken_by_another_trial_is_set_aside(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    spool.put(make_trial(trial_id="01AAA"))

    def conflict(trial: Trial) -> None:
        raise ConflictError(f"{trial.trial_id} is stored with other content.")

    replay = spool.replay(conflict)
    assert replay.stored == 0
    assert [path.name for path in replay.rejected] == ["01AAA.json"]
    assert spool.waiting() == []


def test_a_half_written_file_is_not_seen(tmp_path: Path) -> None:
    (tmp_path / "01AAA.tmp").write_text("{", encoding="utf-8")
    assert Spool(tmp_path).waiting() == []


def test_a_disk_that_refuses_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(CompilewatchError, match="cannot be written"):
        Spool(tmp_path / "file" / "spool").put(make_trial())


def test_the_end_of_a_run_waits_like_a_trial(tmp_path: Path, sqlite_database: Database) -> None:
    start_run(sqlite_database, run_id="R", suite=None, label=None, started_at=START, planned_trials=1)
    spool = Spool(tmp_path / "spool")

    class Away:
        url = "postgresql://away"

        def write(self) -> object:
            raise DatabaseError("No PostgreSQL server answers.", "Start it.")

    note_end("R", START, RunStatus.FINISHED, Away(), spool)  # type: ignore[arg-type]
    assert unended_runs(sqlite_database, ["R"]) == ["R"]
    store_waiting(sqlite_database, spool)
    assert unended_runs(sqlite_database, ["R"]) == []
    assert list(spool.waiting_ends()) == []


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        "[]",
        "not json",
        "[" * 100_000,
        '{"ended_at": "yesterday", "status": "finished"}',
        '{"ended_at": 5, "status": "finished"}',
        '{"ended_at": "2026-11-20T18:00:00", "status": "finished"}',
        '{"ended_at": "2026-11-20T18:00:00+00:00", "status": "gone"}',
    ],
)
def test_a_file_that_says_no_end_is_set_aside_with_its_reason(
    text: str, tmp_path: Path, sqlite_database: Database
) -> None:
    """It would stop every later run and service of this host."""
    spool = Spool(tmp_path)
    spool.put_end("run", START, RunStatus.FINISHED)
    (tmp_path / "ends" / "run.json").write_text(text)
    (tmp_path / "a.json").mkdir()
    store_waiting(sqlite_database, spool)
    assert list(spool.waiting_ends()) == []
    assert (tmp_path / "bad" / "run.json").read_text() == text
    assert "no end of a run" in (tmp_path / "bad" / "run.reason.txt").read_text()
    assert spool.waiting() == []
