"""The newest run and the one before it: what is compared where nobody names two sides."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from compilewatch.db.engine.session import Database
from compilewatch.db.errors import NotFoundError
from compilewatch.db.judge.compare.sides import Selection
from compilewatch.db.queries.run_parts import newest_run, newest_two


class NewestRuns(NamedTuple):
    """The newest run, the one before it if there is one, and whether they come from another tool."""

    newest: Selection
    before: Selection | None
    imported: bool


def newest_runs(
    database: Database, *, only_newest: bool = False, machines: Collection[str] = ()
) -> NewestRuns:
    """The newest measured run with trials, and the one before it of the same suite on the same machine; of
    imported results where nothing was measured. Of `machines` alone, where any is named.

    Runs of no suite that have none before them, as those that only take profiles, give way to the newest run
    of a suite, unless `only_newest`. Of builds that were measured together, in one run or in several, the
    newest is the newest release, and the one before it the release before.
    """
    measured = True
    newest = newest_run(database, measured=True, machines=machines)
    if newest is None:
        measured, newest = False, newest_run(database, measured=False, machines=machines)
    if newest is None:
        raise NotFoundError("There is no run in this database.", "Measure with `compilewatch run`.")
    last, before = newest_two(database, newest.run_id, measured=measured)
    if before is None and not only_newest and newest.suite is None:
        of_suite = newest_run(database, measured=measured, of_suite=True, machines=machines)
        if of_suite is not None:
            named, older = newest_two(database, of_suite.run_id, measured=measured)
            last, before = (last, None) if older is None else (named, older)
    return NewestRuns(last, before, imported=not measured)
