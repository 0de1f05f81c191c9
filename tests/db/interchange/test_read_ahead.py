"""A file read by other processes: stored and refused as by one, and nothing left running."""

import gzip
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy.exc import OperationalError

from db.engine.session import Database, open_database
from db.errors import ConflictError, ProcessEndedError
from db.interchange.files import trial_jsonl
from db.interchange.files.opening import input_files
from db.interchange.read import importing, read_ahead
from db.interchange.read.importing import ImportReport, import_paths
from db.queries.filters import Filters
from db.queries.trials import trial_records
from db.records.trial import Trial
from db.store import trial_writer
from db.store.trial_rows import Batch, BatchMaker, unpacked
from db.store.trials import save_trials
from db.tables.trials import METADATA
from tests.builders import make_history, make_imported, make_trial
from tests.db.interchange.mutations import mutated
from tests.record_strategies import trials

SIZE = 3
TOGETHER = settings(
    max_examples=25,
    deadline=None,
    # More trials than one part holds, each with all its arrays, is not little.
    suppress_health_check=[
        HealthCheck.too_slow,
        HealthCheck.large_base_example,
        HealthCheck.data_too_large,
        HealthCheck.function_scoped_fixture,
    ],
)
Ways = Callable[[bool], None]


@pytest.fixture
def ahead(monkeypatch: pytest.MonkeyPatch) -> Iterator[Ways]:
    """Turns reading ahead on and off, in batches of SIZE trials; at the end no process may be left."""
    for module in (importing, read_ahead):
        monkeypatch.setattr(module, "TRIALS_OF_A_BATCH", SIZE)

    def turn(on: bool) -> None:
        monkeypatch.setattr(read_ahead, "is_possible", lambda: on)

    turn(True)
    yield turn
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


def write(path: Path, some: list[Trial]) -> Path:
    path.write_text("".join(f"{trial.to_json()}\n" for trial in some), encoding="utf-8")
    return path


def rows(database: Database) -> dict[str, list[str]]:
    """Every row of every table, as the driver tells it."""
    with database.read() as connection:
        tables = [table.name for table in METADATA.sorted_tables if table.name != "data_version"]
        return {
            name: sorted(repr(tuple(row)) for row in connection.exec_driver_sql(f"SELECT * FROM {name}"))
            for name in tables
        }


def empty(database: Database) -> None:
    with database.write() as connection:
        for table in reversed(METADATA.sorted_tables):
            if table.name != "data_version":
                connection.execute(table.delete())


def both_ways(
    database: Database, turn: Ways, path: Path, known: list[Trial] | None = None
) -> tuple[ImportReport, dict[str, list[str]]]:
    """Import `path` into what holds `known`, by one process and by several: one outcome."""
    found = []
    for on in (False, True):
        empty(database)
        save_trials(database, known or [])
        turn(on)
        tried = import_paths(database, [path], dry_run=True).as_json()
        report = import_paths(database, [path])
        found.append((report, tried, rows(database)))
    (one, tried_by_one, stored_by_one), (more, tried_by_more, stored_by_more) = found
    assert more.as_json() == one.as_json()
    assert [type(error) for error in more.errors] == [type(error) for error in one.errors]
    assert tried_by_more == tried_by_one
    assert stored_by_more == stored_by_one
    return more, stored_by_more


def some_of_everything() -> list[Trial]:
    history = make_history(
        workloads=("mlp",), builds=("2.12.0", "2.13.0"), failures=[("mlp", "default", 1)], samples=4
    )
    bare = make_trial(samples_ns=[], control_samples_ns=[], warmup_ns=[], failure="cancelled")
    return [*history, make_imported(), make_imported(ended_at=None), bare, make_trial(label="zwei\nµ")]


def test_both_ways_store_the_same(database: Database, ahead: Ways, tmp_path: Path) -> None:
    some = some_of_everything()
    report, stored = both_ways(database, ahead, write(tmp_path / "t.jsonl", some))
    assert (report.new, report.known, report.files[0].failed_trials) == (len(some), 0, 3)
    assert report.files[0].first == tuple(some[:5])[: len(report.files[0].first)]
    assert len(stored["trial"]) == len(some)
    assert {trial.trial_id: trial for trial in trial_records(database, Filters())} == {
        trial.trial_id: trial for trial in some
    }


@TOGETHER
@given(some=st.lists(trials(), min_size=SIZE + 1, max_size=3 * SIZE))
def test_any_trials_are_stored_alike_both_ways(
    sqlite_database: Database, ahead: Ways, tmp_path: Path, some: list[Trial]
) -> None:
    both_ways(sqlite_database, ahead, write(tmp_path / "t.jsonl", some), known=some[1:2])


def test_damaged_files_are_stored_or_refused_alike_both_ways(
    sqlite_database: Database, ahead: Ways, tmp_path: Path
) -> None:
    whole = "".join(f"{trial.to_json()}\n" for trial in some_of_everything()[:8]).encode()
    refused = 0
    for seed in range(60):
        generator = random.Random(seed)
        content = mutated(whole, generator)
        path = tmp_path / "t.jsonl"
        path.write_bytes(gzip.compress(content)[: -generator.randrange(1, 60)] if seed % 3 == 0 else content)
        report, _ = both_ways(sqlite_database, ahead, path)
        refused += len(report.errors)
    assert 20 < refused < 60


def test_trials_known_among_new_ones_are_counted_alike(
    database: Database, ahead: Ways, tmp_path: Path
) -> None:
    some = some_of_everything()
    path = write(tmp_path / "t.jsonl", [*some, *some[:4], some[-1], some[-1]])
    report, _ = both_ways(database, ahead, path, known=[*some[1::3], *some[6:9]])
    known = len({trial.trial_id for trial in [*some[1::3], *some[6:9]]})
    assert (report.new, report.known) == (len(some) - known, known + 6)


def test_the_second_import_adds_nothing(database: Database, ahead: Ways, tmp_path: Path) -> None:
    path = write(tmp_path / "t.jsonl", some_of_everything())
    new = import_paths(database, [path]).new
    stored = rows(database)
    again = import_paths(database, [path])
    assert (again.new, again.known, rows(database)) == (0, new, stored)


def test_batches_come_in_the_order_of_the_file(ahead: Ways, tmp_path: Path) -> None:
    """Each line in one batch, by turns made here, there and there; empty lines and files count for none."""
    some = [make_trial(trial_id=f"t{n}") for n in range(5 * SIZE + 1)]
    for name, part in (("1.jsonl", some[:4]), ("2.jsonl", []), ("3.jsonl", some[4:])):
        path = tmp_path / name
        path.write_text("\n\n" + "".join(f"{trial.to_json()}\n \n" for trial in part))
    files = [file for path in sorted(tmp_path.iterdir()) for file in input_files(path)]
    makers = []

    def making(share: read_ahead.Share) -> Generator[Batch]:
        makers.append(share)
        yield from map(BatchMaker().batch, trial_jsonl.read_to_store(files, SIZE, share.turns()))

    with read_ahead.read_ahead(making) as batches:
        told = [(batch.of_trials("trial_id"), batch.records is None) for batch in batches]
    assert [trial_id for ids, _ in told for trial_id in ids] == [trial.trial_id for trial in some]
    assert [len(ids) for ids, _ in told] == [SIZE] * 5 + [1]
    assert [there for _, there in told] == [False] + [True] * 5
    assert makers == [read_ahead.Share()]
    own = [[*islice(read_ahead.Share(first, 2).turns(), 6)] for first in (1, 2)]
    assert own == [[False, True, False, True, False, True], [False, False, True, False, True, False]]


@pytest.mark.parametrize("place", [1, SIZE, 2 * SIZE + 1])
@pytest.mark.parametrize("stored", [True, False])
def test_another_content_for_a_known_id_is_a_conflict_both_ways(
    database: Database, ahead: Ways, tmp_path: Path, place: int, stored: bool
) -> None:
    """Known from the database, or from an earlier line of the same file or batch."""
    some = [make_trial(trial_id=f"t{n}") for n in range(3 * SIZE)]
    other = some[place].model_copy(update={"label": "other"})
    lines = [*some[:place], other, *some[place + 1 :]] if stored else [*some[: place + 1], other, *some]
    report, found = both_ways(
        database, ahead, write(tmp_path / "t.jsonl", lines), known=some[place : place + 1] * stored
    )
    (error,) = report.errors
    assert isinstance(error, ConflictError)
    assert f"Trial t{place} of run" in error.message
    assert "different content in label" in error.message
    assert len(found["trial"]) == stored


def test_the_same_content_under_another_hash_is_known(
    database: Database, ahead: Ways, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the records tell, which are then read by the process that stores."""
    known = make_trial(trial_id="t4")
    some = [*(make_trial(trial_id=f"t{n}") for n in range(4)), known]
    path = write(tmp_path / "t.jsonl", some)
    compared = []
    real = trial_writer.TrialWriter._require_equal
    monkeypatch.setattr(
        trial_writer.TrialWriter,
        "_require_equal",
        lambda self, trial: (compared.append(trial.trial_id), real(self, trial)),
    )
    save_trials(database, [known])
    with database.write() as connection:
        connection.exec_driver_sql("UPDATE trial SET content_hash = 'of an earlier release'")
    report = import_paths(database, [path])
    assert (report.new, report.known, report.errors) == (4, 1, ())
    assert compared == ["t4"]


def in_other_processes(monkeypatch: pytest.MonkeyPatch, work: Callable[[], Any]) -> None:
    """Have `work` done in each before its second batch is made."""
    parent, made, real = os.getpid(), [], BatchMaker.batch

    def batch(self: BatchMaker, some: list[Trial]) -> Any:
        if os.getpid() != parent:
            if made:
                work()
            made.append(True)
        return real(self, some)

    monkeypatch.setattr(BatchMaker, "batch", batch)


def test_another_process_that_is_killed_stores_nothing(
    database: Database, ahead: Ways, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_other_processes(monkeypatch, lambda: os.kill(os.getpid(), signal.SIGKILL))
    path = write(tmp_path / "t.jsonl", some_of_everything())
    before = rows(database)
    (error,) = import_paths(database, [path]).errors
    assert isinstance(error, ProcessEndedError)
    assert error.message.endswith("was stored.")
    assert error.next_step
    assert rows(database) == before


def test_what_else_goes_wrong_there_is_tried_here(
    database: Database, ahead: Ways, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then its traceback, if it goes wrong here too, is one of this process."""
    in_other_processes(monkeypatch, lambda: 1 / 0)
    some = some_of_everything()
    report = import_paths(database, [write(tmp_path / "t.jsonl", some)])
    assert (report.new, report.known, report.errors) == (len(some), 0, ())


def test_a_process_that_cannot_be_had_is_done_without(
    database: Database, ahead: Ways, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse() -> int:
        raise BlockingIOError("no more processes")

    monkeypatch.setattr(os, "fork", refuse)
    some = some_of_everything()
    assert import_paths(database, [write(tmp_path / "t.jsonl", some)]).new == len(some)


@pytest.mark.parametrize("error", [KeyboardInterrupt, OperationalError("disk is full", None, Exception())])
def test_an_error_of_the_database_ends_the_other_processes(
    sqlite_database: Database, ahead: Ways, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Any
) -> None:
    """The fixture sees that none is left, though it had no room to write all of the file."""

    def fail(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr(trial_writer, "insert_columns", fail)
    with pytest.raises(type(error) if isinstance(error, Exception) else error):
        import_paths(sqlite_database, [write(tmp_path / "t.jsonl", some_of_everything())])


def test_a_small_file_and_a_process_of_threads_stay_with_one_process(
    ahead: Ways, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = some_of_everything()[: SIZE - 1]
    with read_ahead.read_ahead(lambda _: BatchMaker().batches(few, SIZE)) as batches:
        assert [batch.records is None for batch in batches] == [False]
    monkeypatch.undo()
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    monkeypatch.setattr(threading, "active_count", lambda: 1)
    assert read_ahead.is_possible() == (sys.platform == "linux")
    monkeypatch.setattr(threading, "active_count", lambda: 2)
    assert not read_ahead.is_possible()
    monkeypatch.setattr(threading, "active_count", lambda: 1)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {1})
    assert not read_ahead.is_possible()


def values(batch: Batch) -> dict[str, dict[str, list[Any]]]:
    return {table: {name: [*of] for name, of in found.items()} for table, found in batch.columns.items()}


@TOGETHER
@given(some=st.lists(trials(), min_size=1, max_size=4), data=st.data())
def test_a_batch_comes_out_of_the_pipe_as_it_went_in(some: list[Trial], data: st.DataObject) -> None:
    (made,) = BatchMaker().batches(some)
    received = unpacked(made.packed())
    places = data.draw(st.sets(st.sampled_from(range(len(some)))).map(sorted))
    for one, two in ((made, received), (made.only(places), received.only(places))):
        assert values(one) == values(two)
        assert (one.arrays, one.cases, one.dimensions) == (two.arrays, two.cases, two.dimensions)
    (few,) = BatchMaker().batches([some[place] for place in places]) if places else (made.only([]),)
    assert [*few.of_trials("content_hash")] == made.only(places).of_trials("content_hash")
    assert few.cases == made.only(places).cases


SLOWLY = f"""
import os, sys, time
from pathlib import Path
from db.interchange.files import trial_jsonl
from db.interchange.read import importing, read_ahead
from db.interchange.files.opening import input_files
from db.engine.session import open_database
from db.store.trial_rows import BatchMaker
importing.TRIALS_OF_A_BATCH = read_ahead.TRIALS_OF_A_BATCH = {SIZE}
parent, real = os.getpid(), BatchMaker.batch
def slow(self, some):
    if os.getpid() != parent:
        os.write(1, f"{{os.getpid()}}\\n".encode())
        time.sleep(float(sys.argv[3]))
    return real(self, some)
BatchMaker.batch = slow
with open_database(sys.argv[1]) as database:
    importing.import_paths(database, [Path(sys.argv[2])])
"""


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two processors")
@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_an_interrupted_import_leaves_no_process_and_no_row(
    sqlite_url: str, tmp_path: Path, sent: signal.Signals
) -> None:
    """As a terminal interrupts, every process of the group; killed, only the one that stores."""
    path = write(tmp_path / "t.jsonl", some_of_everything())
    takes_s = "0.2" if sent == signal.SIGKILL else "60"
    command = [sys.executable, "-c", SLOWLY, sqlite_url, str(path), takes_s]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    assert process.stdout is not None
    others = [int(process.stdout.readline()) for _ in range(2)]
    (os.kill if sent == signal.SIGKILL else os.killpg)(process.pid, sent)
    _, said = process.communicate(timeout=30)
    assert process.returncode == -sent
    assert ("Traceback" in said) == (sent == signal.SIGINT)
    deadline = time.monotonic() + 30
    while any(running := [Path(f"/proc/{other}").exists() for other in others]):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert running == [False, False]
    with open_database(sqlite_url) as database:
        assert rows(database)["trial"] == []
