"""Writes a database file of this release's schema, and beside it the records that are in it.

    python -m tests.db.schema_fixture tests/db/schemas

Run it before a release, and before a migration is added: the file is what `test_schema_upgrades` upgrades
from then on. It must be made by the code of its own revision, never by a later one; the files here were.
"""

from __future__ import annotations

import shutil
import sqlite3
import sys
import tempfile
from pathlib import Path

from compilewatch.db.engine.schema import HEAD
from compilewatch.db.engine.session import open_database
from compilewatch.db.queries.trials import trial_records
from tests.db.every_table import fill_every_table


def main(directory: str) -> None:
    file = Path(directory) / f"{HEAD}.db"
    with tempfile.TemporaryDirectory() as scratch:
        made = Path(scratch) / "made.db"
        with open_database(f"sqlite:///{made}", migrate=True) as database:
            fill_every_table(database)
            records = [trial.to_json() for trial in trial_records(database)]
        with sqlite3.connect(made, isolation_level=None) as connection:
            # Small pages: the file is kept in the repository.
            for statement in ("journal_mode=DELETE", "page_size=1024"):
                connection.execute(f"PRAGMA {statement}")
            connection.execute("VACUUM")
        connection.close()
        shutil.copyfile(made, file)
    file.with_suffix(".jsonl").write_text("".join(f"{record}\n" for record in records), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
