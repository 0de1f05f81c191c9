"""The file of SQLite and its WAL, copied by hand at random moments while a process stores trials."""

from __future__ import annotations

import os
import random
import shutil
import signal
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest

from compilewatch.db.engine.session import open_database
from compilewatch.db.errors import CompilewatchError
from compilewatch.db.queries.trials import trial_records
from compilewatch.db.service.integrity import find_damage
from compilewatch.db.store.backup import back_up
from compilewatch.db.store.trials import save_trial
from tests.builders import make_trial
from tests.qa.faults.forked import FORKED

_COPIES = int(os.environ.get("COMPILEWATCH_FAULT_COPIES", "200"))
_ORDERS = {"the database first": ("", "-wal"), "the WAL first": ("-wal", ""), "without the WAL": ("",)}


def write_trials(url: str, said: Path) -> None:
    """Store trials without end, and note each once it is committed."""
    descriptor = os.open(said, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
    number = 0
    while True:
        with open_database(url) as database:  # the last connection that closes empties the WAL
            for _ in range(40):
                save_trial(database, make_trial(trial_id=f"trial-{number:06d}", seed=number))
                os.write(descriptor, f"trial-{number:06d}\n".encode())
                number += 1


def _copied(source: Path, order: Sequence[str], directory: Path) -> Path:
    directory.mkdir()
    for suffix in order:
        part = source.with_name(source.name + suffix)
        if part.exists():
            shutil.copyfile(part, directory / f"copy.db{suffix}")
    return directory / "copy.db"


def _outcome(copy: Path, before: set[str]) -> str:
    """What a person finds in a copy that was begun after `before` were committed."""
    url = f"sqlite:///{copy}"
    try:
        with open_database(url) as database:
            if find_damage(database):
                return "named by db check"
            found = {trial.trial_id for trial in trial_records(database)}
    except CompilewatchError as refused:
        return "refused" if copy.name in refused.message else f"refused without its name: {refused}"
    return "whole" if before <= found else "sound, older"


@contextmanager
def _stopped(process: BaseProcess) -> Iterator[None]:
    """While a copy is looked at nothing is written: the next one would take longer to look at."""
    assert process.pid is not None
    os.kill(process.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(process.pid, signal.SIGCONT)


def _copies(tmp_path: Path, how_many: int) -> Counter[tuple[str, str]]:
    source, said = tmp_path / "compilewatch.db", tmp_path / "said"
    url = f"sqlite:///{source}"
    open_database(url, migrate=True).close()
    process = FORKED.Process(target=write_trials, args=(url, said))
    process.start()
    counts: Counter[tuple[str, str]] = Counter()
    moments = random.Random(20261128)
    try:
        while not said.exists() or said.stat().st_size == 0:
            time.sleep(0.01)
        for number in range(how_many):
            for way, order in _ORDERS.items():
                time.sleep(moments.uniform(0.0, 0.05))
                before = set(said.read_text().split("\n")[:-1])
                copy = _copied(source, order, tmp_path / f"copy-{number}")
                with _stopped(process):
                    counts[way, _outcome(copy, before)] += 1
                shutil.rmtree(copy.parent)
            before = set(said.read_text().split("\n")[:-1])
            back_up(url, tmp_path / "backup.db")
            with _stopped(process):
                counts["db backup", _outcome(tmp_path / "backup.db", before)] += 1
            (tmp_path / "backup.db").unlink()
        assert process.is_alive()
    finally:
        process.kill()
        process.join(30)
    return counts


def _expect_backups_whole(counts: Counter[tuple[str, str]], how_many: int) -> None:
    for (way, outcome), count in sorted(counts.items()):
        print(f"{way}: {count} {outcome}")
    assert counts["db backup", "whole"] == how_many


@pytest.mark.faults
@pytest.mark.timeout(9000)
def test_copies_at_random_moments(tmp_path: Path) -> None:
    _expect_backups_whole(_copies(tmp_path, _COPIES), _COPIES)


def test_a_few_copies_at_random_moments(tmp_path: Path) -> None:
    _expect_backups_whole(_copies(tmp_path, 1), 1)
