"""A backup made while others write is whole, and a restored database is the one that was backed up."""

from __future__ import annotations

import shutil
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from compilewatch.db.engine.schema import OLDEST
from compilewatch.db.engine.session import Database, open_database
from compilewatch.db.errors import DatabaseError
from compilewatch.db.queries.data_version import data_version
from compilewatch.db.queries.trials import trial_records
from compilewatch.db.service.integrity import find_damage
from compilewatch.db.service.recording import record_comparison
from compilewatch.db.store.backup import back_up, restore
from compilewatch.db.store.trials import save_trials
from tests.builders import START, make_history, make_imported, make_trial
from tests.db.damaged_page import overwrite_page
from tests.db.processes import saver
from tests.regression_cases import RUN_0, RUN_1, judged, stepping_history

ROOT = Path(__file__).parents[3]
TRIALS = [
    *make_history(workloads=("mlp",), builds=("2.12.0", "2.13.0")),
    make_trial(failure="out_of_memory"),
    make_imported(),
]


def sound_trials(file: Path) -> list[str]:
    with open_database(f"sqlite:///{file}", read_only=True) as backup:
        assert find_damage(backup) == []
        return [trial.trial_id for trial in trial_records(backup)]


def test_a_backup_made_while_others_write_is_whole(database_url: str, tmp_path: Path) -> None:
    """Whatever was acknowledged before it began is in it; whatever is in it is whole."""
    writer, reads = saver(database_url, "busy", count=10_000)
    try:
        for number in range(3):
            acknowledged = {reads.recv() for _ in range(5)}
            file = tmp_path / f"backup-{number}.db"
            assert back_up(database_url, file) == file.stat().st_size
            stored = sound_trials(file)
            assert acknowledged <= set(stored)
            # The writer saves one after the other: no gap, and so one moment.
            assert set(stored) == {f"busy-{n}" for n in range(len(stored))}
    finally:
        writer.kill()
        writer.join()
        reads.close()
    assert {path.name for path in tmp_path.glob("*backup*")} == {f"backup-{n}.db" for n in range(3)}


def test_a_restored_database_holds_what_was_backed_up(
    database: Database, empty_database_url: str, tmp_path: Path
) -> None:
    odd = [make_trial(failure="out_of_memory"), make_imported()]
    save_trials(database, [*stepping_history(1.0, 1.4, builds=("2.12.0", "2.13.0")), *odd])
    assert record_comparison(database, judged(database, RUN_0, RUN_1), at=START)
    file = tmp_path / "kept.db"
    back_up(database.url, file)
    assert restore(file, empty_database_url) == len(list(trial_records(database)))
    with open_database(empty_database_url) as back:
        assert find_damage(back) == []
        assert list(trial_records(back)) == list(trial_records(database))
        assert data_version(back) == data_version(database)
        assert _every_row(back) == _every_row(database)
        # And it goes on: a record that is in the backup is known, a new one is stored.
        assert save_trials(back, [*odd, make_trial(trial_id="after-the-restore")]) == (1, len(odd))


def test_a_backup_of_an_older_release_is_upgraded_on_the_way(tmp_path: Path) -> None:
    old = ROOT / "tests" / "db" / "schemas" / f"{OLDEST}.db"
    before = old.read_bytes()
    assert restore(old, f"sqlite:///{tmp_path / 'new.db'}") > 0
    assert sound_trials(tmp_path / "new.db")
    assert old.read_bytes() == before


def test_nothing_is_written_over(sqlite_url: str, tmp_path: Path) -> None:
    file = tmp_path / "there.db"
    file.write_text("mine")
    with pytest.raises(DatabaseError, match="already"):
        back_up(sqlite_url, file)
    assert file.read_text() == "mine"
    back_up(sqlite_url, tmp_path / "good.db")
    with pytest.raises(DatabaseError, match="already"):
        restore(tmp_path / "good.db", sqlite_url)


def test_a_postgresql_database_with_data_is_not_restored_over(
    request: pytest.FixtureRequest, sqlite_url: str, tmp_path: Path
) -> None:
    target = request.getfixturevalue("empty_postgres_url")
    with open_database(target, migrate=True) as database:
        save_trials(database, TRIALS[:1])
    back_up(sqlite_url, tmp_path / "good.db")
    with pytest.raises(DatabaseError, match="holds data already; nothing was changed"):
        restore(tmp_path / "good.db", target)
    with open_database(target) as database:
        assert [trial.trial_id for trial in trial_records(database)] == [TRIALS[0].trial_id]


def test_what_is_no_backup_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    text = tmp_path / "letter.txt"
    text.write_text("Dear reader, this is not a database." * 40)
    with pytest.raises(DatabaseError, match="not a database file"):
        restore(text, f"sqlite:///{tmp_path / 'new.db'}")
    with pytest.raises(DatabaseError, match=r"no database at .* nothing was restored"):
        restore(tmp_path / "absent.db", f"sqlite:///{tmp_path / 'new.db'}")
    assert [path.name for path in tmp_path.iterdir()] == ["letter.txt"]


def test_a_directory_that_is_not_there_is_named(sqlite_url: str, tmp_path: Path) -> None:
    with pytest.raises(DatabaseError, match=r"The directory .*nowhere does not exist") as caught:
        back_up(sqlite_url, tmp_path / "nowhere" / "file.db")
    assert "mkdir" in caught.value.next_step


def test_a_damaged_database_makes_no_backup(
    sqlite_database: Database, sqlite_url: str, tmp_path: Path
) -> None:
    save_trials(sqlite_database, TRIALS)
    sqlite_database.close()
    damaged = tmp_path / "damaged.db"
    shutil.copyfile(sqlite_url.removeprefix("sqlite:///"), damaged)
    overwrite_page(damaged, "ix_trial_started_at")
    with pytest.raises(DatabaseError, match="damaged"):
        back_up(f"sqlite:///{damaged}", tmp_path / "file.db")
    assert not (tmp_path / "file.db").exists()


def test_vacuum_gives_space_back_and_keeps_every_row(database: Database) -> None:
    save_trials(database, TRIALS)
    before = _every_row(database)
    database.vacuum()
    assert _every_row(database) == before
    assert database.size_bytes() > 0


def test_vacuum_shrinks_a_file_whose_rows_were_deleted(sqlite_database: Database) -> None:
    save_trials(sqlite_database, make_history(samples=400))
    with sqlite_database.write() as connection:
        connection.exec_driver_sql("DELETE FROM trial_samples")
    full = sqlite_database.size_bytes()
    sqlite_database.vacuum()
    assert sqlite_database.size_bytes() < full


SLOW = """
import sys, time
from compilewatch.db.store import backup
from compilewatch.runner.cli.front import main
def waits(_part):
    print("writing", flush=True)
    time.sleep(60)
backup._require_sound = waits
main(sys.argv[1:])
"""


def test_a_backup_that_is_ended_leaves_nothing_and_one_that_is_killed_nothing_for_long(
    sqlite_database: Database, sqlite_url: str, tmp_path: Path
) -> None:
    save_trials(sqlite_database, [make_trial()])
    folder = tmp_path / "backups"
    folder.mkdir()
    (folder / ".notes.7.part").write_text("mine")
    (folder / ".link.7.compilewatch-part").symlink_to(tmp_path)

    def begun(name: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", SLOW, "db", "backup", str(folder / name), "--db", sqlite_url]
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        assert process.stdout.readline() == "writing\n"
        return process

    def parts() -> set[str]:
        return {path.name.split(".")[1] for path in folder.glob(".*.db.*")}

    with begun("ended.db") as ended, begun("killed.db") as killed, begun("going.db") as going:
        assert parts() == {"ended", "killed", "going"}
        ended.send_signal(signal.SIGTERM)
        assert ended.wait(30) == 128 + signal.SIGTERM
        killed.kill()
        killed.wait(30)
        assert parts() == {"killed", "going"}
        back_up(sqlite_url, folder / "next.db")
        assert parts() == {"going"}
        going.kill()
    assert {".notes.7.part", ".link.7.compilewatch-part", "next.db"} <= {p.name for p in folder.iterdir()}


def test_a_database_and_its_backup_are_read_by_their_owner_alone(tmp_path: Path) -> None:
    """They hold the ids of reports, which open what they name."""
    url = f"sqlite:///{tmp_path / 'new.db'}"
    with open_database(url, migrate=True) as database:
        save_trials(database, [make_trial()])
        back_up(url, tmp_path / "copy.db")
        restore(tmp_path / "copy.db", f"sqlite:///{tmp_path / 'restored.db'}")
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    assert {"new.db", "copy.db", "restored.db"} <= modes.keys()
    assert set(modes.values()) == {0o600}


def _every_row(database: Database) -> dict[str, list[tuple[object, ...]]]:
    from sqlalchemy import select

    from compilewatch.db.engine.tables import METADATA

    with database.read() as connection:
        return {
            table.name: [tuple(row) for row in connection.execute(select(table).order_by(*table.primary_key))]
            for table in METADATA.sorted_tables
        }
