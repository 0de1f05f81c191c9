"""Rows edited by hand: every page is drawn or names the damaged row, and so do the API and commands.

Here a few cells of the tables that pages read. `-m faults` tries every column with every kind of value, or
each COMPILEWATCH_FAULT_CELLS-th of a table's.
"""

from __future__ import annotations

import itertools
import os
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest
from sqlalchemy import create_engine, select, text

from compilewatch.dashboard.document.sections import sections
from compilewatch.dashboard.links.links import Link, Page
from compilewatch.dashboard.pages.registry import CONTENTS
from compilewatch.dashboard.read.data import read_choices
from compilewatch.dashboard.read.database import close_databases, sentence_of
from compilewatch.dashboard.read.versions import REFRESH_THROTTLE, one_version
from compilewatch.dashboard.render.shell import resolved_view
from compilewatch.db.engine.session import open_database
from compilewatch.db.engine.tables import METADATA, TRIAL
from compilewatch.db.service.integrity import find_damage
from compilewatch.runner.cli.app import app
from compilewatch.runner.cli.front import EXIT_DEFECT, exit_code_of
from tests.dashboard.asking import ask, whole_application
from tests.dashboard.conftest import DATABASE
from tests.db.edited_cells import Cell, edit, edited_cells
from tests.db.every_table import fill_every_table

_SOME = [
    ("trial", "latency_ns", "text"),
    ("trial", "started_at", "seven"),
    ("trial_detail", "cold_start", "lists"),
    ("run_case", "speedup", "infinite"),
    ("machine", "name", "bytes"),
    ("notification", "regression_id", "bytes"),
    ("workload", "shape", "number"),
    ("regression", "document", "lists"),
    ("triage_event", "at", "text"),
    ("triage_event", "note", "absurd"),
    ("trial", "machine_name", "absurd"),
    ("run_request", "spec", "word"),
    ("annotation", "written_at", "day"),
    ("data_version", "version", "blob"),
]


_EVERY = int(os.environ.get("COMPILEWATCH_FAULT_CELLS", "1"))
_ANSWERS = (
    ("/api/v1/series", {"workload": "mlp"}),
    ("/api/v1/trials", {}),
    ("/api/v1/builds", {}),
    ("/api/v1/regressions", {}),
)
_COMMANDS = (
    ["list", "runs"],
    ["list", "trials"],
    ["list", "regressions"],
    ["break-even"],
    ["history", "-w", "mlp"],
    ["export", "--format", "jsonl"],
)


@dataclass
class Edited:
    """A database with rows in every table, of which one cell at a time is edited."""

    file: Path
    sound: Path
    trial: str
    versions: Iterator[int]

    @property
    def url(self) -> str:
        return f"sqlite:///{self.file}"

    def write(self, cell: Cell) -> bool:
        """As another program would; whether SQLite lets the value in. Pages look again."""
        with closing(sqlite3.connect(self.sound)) as source, closing(sqlite3.connect(self.file)) as target:
            source.backup(target)
        engine = create_engine(self.url)  # which enforces no reference
        with engine.begin() as connection:
            let_in = edit(connection, cell.column.table, cell)
            if cell.column.table.name != "data_version":
                version = {"version": next(self.versions)}
                connection.execute(text("UPDATE data_version SET version = :version"), version)
        engine.dispose()
        return let_in

    def damage(self) -> list[str]:
        """What `db check` names."""
        with open_database(self.url, read_only=True) as database:
            return [each.what for each in find_damage(database)]

    def pages(self) -> dict[str, str]:
        """How each page ends: drawn, or the sentence that it says; a defect by its exception."""
        links = [*(Link(page=page) for page in CONTENTS), Link(page=Page.TRIAL, trial=self.trial)]
        return {f"{link.page.name}{' of one' if link.trial else ''}": _drawn(link) for link in links}


def _drawn(link: Link) -> str:
    try:
        with one_version():
            content = CONTENTS[link.page](resolved_view(link, read_choices()).link)
            sections([*content.parts, *content.appendix()])
    except Exception as error:
        known = sentence_of(error)
        return f"defect: {type(error).__name__}: {error}" if known is None else str(known)
    return "drawn"


@pytest.fixture(scope="module")
def edited(tmp_path_factory: pytest.TempPathFactory, _sqlite_template: Path) -> Iterator[Edited]:
    folder = tmp_path_factory.mktemp("edited")
    sound, file = folder / "sound.db", folder / "edited.db"
    sound.write_bytes(_sqlite_template.read_bytes())
    with open_database(f"sqlite:///{sound}") as database:
        fill_every_table(database)
        trial = database.scalars(select(TRIAL.c.trial_id).order_by(TRIAL.c.trial_id))[0]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(DATABASE, f"sqlite:///{file}")
        patch.setattr(REFRESH_THROTTLE, "_every_s", 0)
        yield Edited(file, sound, trial, itertools.count(1_000))
        close_databases()


def test_a_time_as_large_as_a_number_can_be_ends_nothing(edited: Edited) -> None:
    """A column may hold it, and no step of 1e308 ns was ever measured."""
    assert edited.write(_cell("trial", "latency_ns", "huge"))
    assert edited.damage()
    assert not [end for end in edited.pages().items() if end[1].startswith("defect")]


def _cell(table: str, column: str, name: str) -> Cell:
    cells = edited_cells(METADATA.tables[table], "sqlite")
    return next(cell for cell in cells if cell.column.name == column and cell.name == name)


@pytest.mark.parametrize(("table", "column", "name"), _SOME)
def test_whoever_reads_a_damaged_row_is_told_which(
    table: str, column: str, name: str, edited: Edited, capsys: pytest.CaptureFixture[str]
) -> None:
    assert edited.write(_cell(table, column, name))
    assert any(f"{column} of 1 row of {table} cannot be read: " in what for what in edited.damage())
    ends = edited.pages()
    assert not [end for end in ends.items() if end[1].startswith("defect")]
    assert all("db check" in end for end in ends.values() if end != "drawn"), ends
    with whole_application() as server:
        for path, query in _ANSWERS:
            answer = ask(server, path, query)
            assert answer.status == 200 or b"db check" in answer.body, (path, answer.body)
    for command in _COMMANDS:
        assert exit_code_of(app, [*command, "--db", edited.url]) != EXIT_DEFECT, capsys.readouterr().err
    capsys.readouterr()


@pytest.mark.faults
@pytest.mark.parametrize("table", sorted(METADATA.tables))
def test_every_cell_with_every_value(table: str, edited: Edited) -> None:
    counts: Counter[str] = Counter()
    defects = []
    for cell in list(edited_cells(METADATA.tables[table], "sqlite"))[::_EVERY]:
        where = f"{table}.{cell.column.name}: {cell.name}"
        if not edited.write(cell):
            counts["refused by SQLite"] += 1
            continue
        counts["let in"] += 1
        try:
            named = bool(edited.damage())
        except Exception as error:
            defects.append(f"{where}: db check: {type(error).__name__}: {error}")
            named = False
        counts["named by db check" if named else "not named, and legal" if cell.is_legal else "silent"] += 1
        for page, end in edited.pages().items():
            kind = "drawn" if end == "drawn" else "neither" if end.startswith("defect") else "said"
            counts[f"pages {kind}"] += 1
            if kind == "neither":
                defects.append(f"{where}: {page}: {end}")
    print(table, *(f"{kind} {n}" for kind, n in sorted(counts.items())), sep="; ")
    print(*defects, sep="\n")
    assert counts["silent"] == 0
    assert defects == []
