"""Whatever the database lets into a cell and the column cannot hold is named, with its row."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import pytest
from sqlalchemy import Table, text

from compilewatch.db.engine.session import Database, open_database
from compilewatch.db.engine.tables import METADATA, RUN_CASE, TRIAL
from compilewatch.db.service.integrity import find_damage
from compilewatch.db.service.stored_values import wrong_values
from compilewatch.db.store.trials import save_trials
from tests.builders import make_timed, make_trial
from tests.db.edited_cells import Cell, edit, edited_cells
from tests.db.every_table import fill_every_table


def _rounds(table: Table, dialect: str) -> Iterator[list[Cell]]:
    """Cells to be edited at once: one, but of the widest tables, whose columns are read each for itself."""
    of_kind: dict[str, list[Cell]] = defaultdict(list)
    for cell in edited_cells(table, dialect):
        if table in (RUN_CASE, TRIAL) and not cell.column.primary_key:
            of_kind[cell.name].append(cell)
        else:
            yield [cell]
    yield from of_kind.values()


def test_every_cell_that_holds_what_it_cannot_is_named(database: Database) -> None:
    fill_every_table(database)
    silent, false_alarms, tried = [], [], 0
    with database.write() as connection:
        if database.dialect == "sqlite":
            connection.execute(text("PRAGMA defer_foreign_keys = ON"))
        for table in METADATA.sorted_tables:
            assert wrong_values(connection, table) == []
            for cells in _rounds(table, database.dialect):
                savepoint = connection.begin_nested()
                let_in = [cell for cell in cells if edit(connection, table, cell)]
                if let_in:
                    tried += len(let_in)
                    found = wrong_values(connection, table)
                    # Values that do not go together have no column, and are damage all the same.
                    named = {wrong.column for wrong in found}
                    silent += [
                        each for each in let_in if not (each.is_legal or named & {each.column.name, ""})
                    ]
                    false_alarms += sorted(named - {"", *(cell.column.name for cell in let_in)})
                    assert all(len(wrong.keys) == 1 for wrong in found)
                savepoint.rollback()
        connection.rollback()
    assert silent == []
    assert false_alarms == []
    assert tried > 1_000, "the databases take most of it"


@pytest.mark.parametrize("column", ["peak_bytes", "graphs", "failure_message", "energy_per_step_j"])
@pytest.mark.parametrize("value", ["NULL", "7000000000000000000", "'7'"])
def test_a_figure_that_its_record_does_not_have_is_named(column: str, value: str, sqlite_url: str) -> None:
    with open_database(sqlite_url) as database:
        save_trials(database, [make_timed(), make_trial(), make_trial(failure="out_of_memory")])
        with database.write() as connection:
            changed = connection.execute(
                text(f"UPDATE trial SET {column} = {value} WHERE {column} IS NOT NULL")
            ).rowcount
        found = find_damage(database)
    assert (changed == 0) == (not found)
    if changed:
        assert any(each.what.startswith(f"{column} of ") for each in found), found
