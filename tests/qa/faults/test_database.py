"""The database locked, read-only, full, damaged or away while trials end: they wait on disk."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from compilewatch.db.engine import sqlite as sqlite_engine
from compilewatch.db.errors import CompilewatchError, DatabaseError
from compilewatch.db.store.backup import back_up, restore
from tests.db.damaged_page import overwrite_page
from tests.qa.faults.conftest import ROUNDS, Tally, worked_in
from tests.qa.faults.invariants import expect_all_is_well
from tests.qa.faults.place import Place, Told, database_of, measure, new_place, spec_of, work
from tests.qa.faults.small_disk import SmallDisk, small_disk

_TRIALS = 2


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    with small_disk(tmp_path / "disk", "4m") as mounted:
        yield mounted


@pytest.fixture
def place_on_disk(disk: SmallDisk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    """Its database is alone on the small disk; spool and scratch are elsewhere."""
    return worked_in(new_place(f"sqlite:///{disk.directory / 'c.db'}", tmp_path / "place"), monkeypatch)


def _measure_while(
    place: Place, run_id: str, trouble: contextlib.AbstractContextManager[object], trials: int = _TRIALS
) -> list[str]:
    """Announce a run, then measure while `trouble` lasts; the trials that were said to be finished."""
    measure(place, run_id, [])
    told = Told()
    with database_of(place) as database, trouble:
        work(place, database, [spec_of(place, run_id, "none") for _ in range(trials)], told)
    assert len(told.trials) == trials
    return [trial.trial_id for trial in told.trials]


@pytest.mark.faults
@pytest.mark.timeout(1800)
def test_the_disk_of_the_database_is_full(
    disk: SmallDisk,
    place_on_disk: Place,
    tally: Tally,
    numbered: Callable[[str], str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    acknowledged: list[str] = []
    for _ in range(ROUNDS * 2):
        with tally.fault("database", "disk full"):
            caplog.clear()
            acknowledged += _measure_while(place_on_disk, numbered("run"), disk.full())
            expect_all_is_well(place_on_disk, acknowledged)
            said = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
            assert said, "nobody was told"
            assert all("\n" not in line for line in said)


@pytest.mark.faults
@pytest.mark.timeout(1800)
def test_the_disk_of_the_database_is_read_only(
    disk: SmallDisk, place_on_disk: Place, tally: Tally, numbered: Callable[[str], str]
) -> None:
    """As after an error of the disk: nothing is measured that could not be kept."""
    acknowledged: list[str] = []
    for _ in range(ROUNDS):
        with tally.fault("database", "disk read-only"):
            run_id = numbered("run")
            (trial,) = measure(place_on_disk, run_id, [spec_of(place_on_disk, run_id, "none")])
            acknowledged.append(trial.trial_id)
            with disk.read_only(), pytest.raises(DatabaseError, match="cannot be written") as caught:
                measure(place_on_disk, numbered("run"), [])
            assert "\n" not in caught.value.message
            expect_all_is_well(place_on_disk, acknowledged)


@contextlib.contextmanager
def _locked(place: Place) -> Iterator[None]:
    connection = sqlite3.connect(place.url.removeprefix("sqlite:///"), isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        connection.execute("ROLLBACK")
        connection.close()


@pytest.mark.faults
@pytest.mark.timeout(1800)
def test_the_database_is_locked(
    place: Place, tally: Tally, numbered: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_engine, "_BUSY_TIMEOUT_S", 0.05)
    acknowledged: list[str] = []
    for _ in range(ROUNDS * 2):
        with tally.fault("database", "locked for longer than a writer waits"):
            acknowledged += _measure_while(place, numbered("run"), _locked(place))
            expect_all_is_well(place, acknowledged)


@pytest.mark.faults
@pytest.mark.timeout(300)
def test_the_database_is_locked_for_longer_than_thirty_seconds(
    place: Place, tally: Tally, numbered: Callable[[str], str]
) -> None:
    with tally.fault("database", "locked for more than 30 s"):
        began = time.monotonic()
        acknowledged = _measure_while(place, numbered("run"), _locked(place), trials=1)
        assert time.monotonic() - began > 29
        expect_all_is_well(place, acknowledged)


@pytest.mark.faults
@pytest.mark.timeout(1800)
def test_the_file_is_gone(place: Place, tally: Tally, numbered: Callable[[str], str]) -> None:
    """Somebody moved it away: nothing new is made in its place, and a run does not begin."""
    file = Path(place.url.removeprefix("sqlite:///"))
    acknowledged = [trial.trial_id for trial in measure(place, "first", [spec_of(place, "first", "none")])]
    for _ in range(ROUNDS):
        with tally.fault("database", "the file is gone"):
            away = file.with_name("away.db")
            file.rename(away)
            with pytest.raises(DatabaseError, match="There is no database") as caught:
                measure(place, numbered("run"), [])
            assert "\n" not in caught.value.message
            assert not file.exists()
            away.rename(file)
            expect_all_is_well(place, acknowledged)


@pytest.mark.faults
@pytest.mark.timeout(1800)
def test_a_page_is_damaged(place: Place, tally: Tally, numbered: Callable[[str], str]) -> None:
    """What ends while it is damaged waits on disk; with the backup back, all of it is stored."""
    file = Path(place.url.removeprefix("sqlite:///"))
    acknowledged: list[str] = []
    for number in range(ROUNDS):
        with tally.fault("database", "a page overwritten, then restored from a backup"):
            run_id = numbered("run")
            measure(place, run_id, [])
            backup = place.directory / f"backup-{number}.db"
            back_up(place.url, backup)
            overwrite_page(file, "ix_trial_started_at")  # every new trial goes through it
            acknowledged += _measure_into_damage(place, run_id)
            _remove(file)
            restore(backup, place.url)
            expect_all_is_well(place, acknowledged)


def _measure_into_damage(place: Place, run_id: str) -> list[str]:
    told = Told()
    try:
        with database_of(place) as database:
            work(place, database, [spec_of(place, run_id, "none")], told)
    except DatabaseError as error:
        # So badly damaged that nothing begins: one sentence, and nothing to lose.
        if "damaged" not in error.message:
            raise
    return [trial.trial_id for trial in told.trials]


def _remove(file: Path) -> None:
    for suffix in ("", "-wal", "-shm"):
        file.with_name(file.name + suffix).unlink(missing_ok=True)


@pytest.mark.faults
@pytest.mark.timeout(1800)
def test_the_disk_of_the_spool_is_full(place: Place, tally: Tally, numbered: Callable[[str], str]) -> None:
    """A trial goes straight to the database then."""
    acknowledged: list[str] = []
    with small_disk(place.directory / "data", "1m") as disk:
        for _ in range(ROUNDS * 2):
            with tally.fault("spool", "disk full"):
                acknowledged += _measure_while(place, numbered("run"), disk.full())
                expect_all_is_well(place, acknowledged)


@pytest.mark.faults
@pytest.mark.timeout(1800)
def test_the_disk_of_the_cache_is_full(
    place: Place, tmp_path: Path, tally: Tally, numbered: Callable[[str], str]
) -> None:
    acknowledged: list[str] = []
    with small_disk(tmp_path / "cache", "1m"):
        for _ in range(ROUNDS):
            with tally.fault("cache", "disk full"):
                run_id = numbered("run")
                cache = {"TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "cache")}
                spec = spec_of(place, run_id, "full cache", worker_env=cache)
                (trial,) = measure(place, run_id, [spec])
                assert "No space left on device" in (trial.failure.log_tail or ""), trial.failure
                acknowledged.append(trial.trial_id)
                expect_all_is_well(place, acknowledged)
                shutil.rmtree(tmp_path / "cache" / "kernel", ignore_errors=True)


@pytest.mark.faults
@pytest.mark.timeout(1800)
def test_nothing_is_said_to_be_kept_where_neither_disk_takes_it(
    disk: SmallDisk, place_on_disk: Place, tally: Tally, numbered: Callable[[str], str]
) -> None:
    """Spool and database full at once: the trial is not counted, and one sentence says that it is lost."""
    acknowledged: list[str] = []
    spool = place_on_disk.directory / "data"
    for _ in range(ROUNDS):
        with tally.fault("spool and database", "both full"), contextlib.ExitStack() as stack:
            other = stack.enter_context(small_disk(spool, "1m"))
            run_id = numbered("run")
            measure(place_on_disk, run_id, [])
            told = Told()
            specs = [spec_of(place_on_disk, run_id, "none")]
            with (
                database_of(place_on_disk) as database,
                other.full(),
                disk.full(),
                pytest.raises(CompilewatchError, match=r"Trial .* is lost\.") as caught,
            ):
                work(place_on_disk, database, specs, told)
            assert "\n" not in str(caught.value)
            assert told.trials == []
            expect_all_is_well(place_on_disk, acknowledged)
