"""Writes about scripts for issues. Pages show them, so the version of the data grows."""

from __future__ import annotations

from compilewatch.db.engine.session import Database
from compilewatch.db.records.people.issues import IssueScript
from compilewatch.db.store.writing import bump_data_version, lock_data_version, upsert
from compilewatch.db.tables.trials import ISSUE_SCRIPT


def save_issue_script(db: Database, script: IssueScript) -> None:
    """Store it in the place of an earlier one of the same case and builds."""
    values = script.model_dump() | {"runs": [each.model_dump(mode="json") for each in script.runs]}
    with db.write() as connection:
        lock_data_version(connection)
        statement = upsert(connection, ISSUE_SCRIPT).values(**values)
        connection.execute(statement.on_conflict_do_update(index_elements=["issue_id"], set_=values))
        bump_data_version(connection)
