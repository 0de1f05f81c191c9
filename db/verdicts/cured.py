"""What became of recorded regressions: whether a later build still shows them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from compilewatch.db.engine.session import Database
from compilewatch.db.judge.compare.recorded_regressions import Regression, side_title
from compilewatch.db.judge.compare.sides import Selection, VerdictError
from compilewatch.db.judge.decide_again import is_gone
from compilewatch.db.judge.policy import Policy
from compilewatch.db.people.regressions import Later, RegressionState
from compilewatch.db.queries import facets
from compilewatch.db.queries.filters import Filters
from compilewatch.db.queries.run_parts import builds_newest_first, newest_run, run_side
from compilewatch.db.records.people import OPEN_STATES
from compilewatch.db.verdicts.gateway import compare


def with_later(
    database: Database, states: Sequence[RegressionState], policy: Policy
) -> tuple[RegressionState, ...]:
    """`states`, each open one with what the newest later build of its machine says of it; where both sides
    are of one build, its newest run.

    It is judged against the base of then: a step that a later build takes back is gone. One comparison is
    made for all that is recorded of one base on one machine.
    """
    groups: dict[tuple[str, str], list[Regression]] = {}
    for each in states:
        regression = each.regression
        if each.state in OPEN_STATES and regression.machine_id is not None:
            groups.setdefault((regression.machine_id, regression.base_key), []).append(regression)
    found: dict[str, Later] = {}
    for (machine_id, _), regressions in groups.items():
        found |= _of_group(database, machine_id, regressions, policy)
    return tuple(replace(each, later=found.get(each.regression.regression_id)) for each in states)


def _of_group(
    database: Database, machine_id: str, regressions: Sequence[Regression], policy: Policy
) -> dict[str, Later]:
    """By id what the later side says of `regressions`, which have their base in common."""
    first = regressions[0]
    names = tuple(sorted({each.row.workload for each in regressions}))
    filters = Filters(machines=(machine_id,), workloads=names)
    later = _later_side(database, filters, regressions)
    if later is None:
        return {}
    of_runs = set(first.base.build_ids) == set(first.head.build_ids)
    runs = first.base.run_ids if of_runs else ()
    base = Selection(name=first.base.name, build_ids=first.base.build_ids, run_ids=runs)
    try:
        comparison = compare(database, base, later, filters, machine_id=machine_id, policy=policy)
    except VerdictError:
        return {}
    title = side_title(comparison.head, comparison.changed_components)
    rows = {(row.case.ids, row.metric): row for row in comparison.rows}
    found = {}
    for each in regressions:
        row = rows.get((each.row.case.ids, each.row.metric))
        gone = None if row is None else is_gone(row, each.row)
        if gone is not None:
            found[each.regression_id] = Later(title, comparison.head.build_ids, is_gone=gone)
    return found


def _later_side(database: Database, filters: Filters, regressions: Sequence[Regression]) -> Selection | None:
    """The newest of what was measured after the heads of `regressions` that is no older release; None where
    nothing was.
    """
    first = regressions[0]
    heads = {build for each in regressions for build in each.head.build_ids}
    if heads == set(first.base.build_ids):
        newest = newest_run(database, measured=True, machines=filters.machines)
        known = {run for each in regressions for side in (each.base, each.head) for run in side.run_ids}
        return None if newest is None or newest.run_id in known else run_side(newest.run_id)
    measured = builds_newest_first(database, filters)
    order = facets.builds(database, sorted({*measured, *heads}))["build_id"].tolist()
    place = max((order.index(build) for build in heads if build in order), default=-1)
    later = next((build for build in measured if order.index(build) > place), None)
    return None if later is None else Selection(name=later, build_ids=(later,))
