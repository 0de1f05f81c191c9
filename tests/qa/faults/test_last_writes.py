"""Every command that writes is killed at each of its writes in turn; then it is typed once more.

What is there afterwards is what is there where nobody kills anything: rows, files, and nothing besides.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from compilewatch.db.engine.session import open_database
from compilewatch.db.engine.tables import DATA_VERSION, METADATA
from compilewatch.db.service.integrity import find_damage
from compilewatch.runner.cli.front import EXIT_CANNOT
from tests.conftest import postgres_database
from tests.qa.faults.conftest import Tally
from tests.qa.faults.last_write import writing
from tests.qa.faults.writing_commands import COMMANDS, Command, Ground

WRITES = int(os.environ["COMPILEWATCH_FAULT_WRITES"]) if "COMPILEWATCH_FAULT_WRITES" in os.environ else None
"""At how many of a command's writes it is killed; at all unless told otherwise."""
_OF_A_DATABASE = re.compile(r"compilewatch\.db(-wal|-shm)?|said\.txt|.*-(wal|shm)")
Lay = Callable[[], contextlib.AbstractContextManager[Ground]]


@contextlib.contextmanager
def _grounds(command: Command, backend: str, directory: Path, server: str | None) -> Iterator[Lay]:
    """Makes copies of the ground of a command, one after the other."""
    with contextlib.ExitStack() as stack:
        first = directory / "first"
        first.mkdir()
        url = f"sqlite:///{first / 'compilewatch.db'}"
        if server is not None:
            url = stack.enter_context(postgres_database(server))
        command.lay(Ground(first, url))

        @contextlib.contextmanager
        def one() -> Iterator[Ground]:
            place = directory / "ground"
            shutil.copytree(first, place)
            try:
                if server is None:
                    yield Ground(place, f"sqlite:///{place / 'compilewatch.db'}")
                else:
                    with postgres_database(server, url.rpartition("/")[2].partition("?")[0]) as copy:
                        yield Ground(place, copy)
            finally:
                shutil.rmtree(place)

        yield one


def _tables(url: str, forgets: frozenset[str]) -> dict[str, list[str]]:
    """Every row of every table, as text, in order; `forgets` are columns left out."""
    with open_database(url, read_only=True) as database:
        assert find_damage(database) == []
        return {
            table.name: sorted(
                str([value for name, value in row._mapping.items() if name not in forgets])
                for row in database.rows(select(table))
            )
            for table in METADATA.sorted_tables
            if table is not DATA_VERSION
        }


def _outcome(command: Command, ground: Ground) -> dict[str, Any]:
    """What a command leaves: the tables of its database, and every file that is not the database's."""
    found: dict[str, Any] = dict(_tables(ground.url, command.forgets))
    if command.comes_to is not None:
        found = {"comes to": command.comes_to(ground)}
    for path in sorted(ground.directory.rglob("*")):
        if path.is_dir() or _OF_A_DATABASE.fullmatch(path.name) or (ground / "scratch") in path.parents:
            continue
        name = str(path.relative_to(ground.directory))
        is_database = path.read_bytes()[:15] == b"SQLite format 3"
        found[name] = _tables(f"sqlite:///{path}", command.forgets) if is_database else path.read_bytes()
    return found


def _differences(command: Command, expected: dict[str, Any], found: dict[str, Any]) -> list[str]:
    different = [name for name in expected.keys() | found.keys() if expected.get(name) != found.get(name)]
    return [
        name for name in different if not (name in command.more and set(found[name]) == set(expected[name]))
    ]


def _some(writes: Sequence[str], how_many: int | None) -> list[int]:
    """Numbers of writes from 1: all, or some that are spread evenly, the first and the last among them."""
    if how_many is None or how_many >= len(writes):
        return list(range(1, len(writes) + 1))
    return sorted({round(1 + number * (len(writes) - 1) / (how_many - 1)) for number in range(how_many)})


def _killed_at_each(
    command: Command, backend: str, directory: Path, server: str | None, tally: Tally, how_many: int | None
) -> None:
    failures = []
    with _grounds(command, backend, directory, server) as lay:
        with lay() as ground:
            whole = writing(ground.directory, command.work, [ground])
            assert whole.code == 0, (ground / "said.txt").read_text()
            expected = _outcome(command, ground)
        assert whole.writes
        for last in _some(whole.writes, how_many):
            what = whole.writes[last - 1]
            with lay() as ground:
                cut = writing(ground.directory, command.work, [ground], last=last)
                assert cut.was_killed, (last, what, (ground / "said.txt").read_text())
                again = writing(ground.directory, command.work, [ground])
                said = (ground / "said.txt").read_text()
                try:
                    with tally.fault(f"{command.name}, {backend}", "kill -9 at a write"):
                        # Where the last write of all was done, it says that it is.
                        assert again.code in (0, EXIT_CANNOT), said
                        assert _differences(command, expected, _outcome(command, ground)) == []
                except AssertionError as failure:
                    failures.append(f"{last} of {len(whole.writes)}, {what}: {failure} {said}")
    assert not failures, f"{len(failures)} failed\n" + "\n".join(failures)


@pytest.mark.parametrize("backend", ["sqlite", "postgresql"])
@pytest.mark.parametrize("command", COMMANDS, ids=[command.name.replace(" ", "-") for command in COMMANDS])
@pytest.mark.faults
@pytest.mark.timeout(3600)
def test_killed_at_each_write(
    command: Command, backend: str, tmp_path: Path, request: pytest.FixtureRequest, tally: Tally
) -> None:
    if backend == "postgresql" and not command.on_servers:
        pytest.skip("the old schema is a file of SQLite")
    server = None if backend == "sqlite" else request.getfixturevalue("postgres_url")
    _killed_at_each(command, backend, tmp_path, server, tally, WRITES)


@pytest.mark.parametrize("name", ["backup", "import", "replay of the spool"])
def test_killed_at_two_writes(name: str, tmp_path: Path, tally: Tally) -> None:
    (command,) = (each for each in COMMANDS if each.name == name)
    _killed_at_each(command, "sqlite", tmp_path, None, tally, 2)
