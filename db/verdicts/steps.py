"""Every step that a machine's history shows, counted alike by commands, pages and the API.

What became of recorded regressions: whether a later build still shows them.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

from pandas import DataFrame

from compilewatch.db.engine.session import Database
from compilewatch.db.errors import NotFoundError
from compilewatch.db.judge.compare.recorded_regressions import Regression, side_title
from compilewatch.db.judge.compare.sides import Selection, VerdictError
from compilewatch.db.judge.decide_again import is_gone
from compilewatch.db.judge.decide_series import is_worse_at_last
from compilewatch.db.judge.history.machine import Compare, EventGroup, machine_history
from compilewatch.db.judge.policy import Policy
from compilewatch.db.judge.results import Comparison
from compilewatch.db.judge.sequence import builds_interleaved
from compilewatch.db.queries import facets
from compilewatch.db.queries.facets import most_runs
from compilewatch.db.queries.named import require_stored
from compilewatch.db.queries.run_parts import builds_newest_first, newest_run, newest_two, run_side
from compilewatch.db.queries.selection import Filters
from compilewatch.db.queries.trials import trials_frame
from compilewatch.db.records.people import OPEN_STATES
from compilewatch.db.records.vocabulary import CauseClass
from compilewatch.db.service.regressions import Later, RegressionState
from compilewatch.db.units import count, plural
from compilewatch.db.verdicts import gateway
from compilewatch.db.verdicts.gateway import compare

SCHEMA = "compilewatch.changes/1"


@dataclass(frozen=True)
class MachineSteps:
    """The grouped steps of one machine, newest last, the trials that they were found in, and what judges two
    sides of them.
    """

    groups: tuple[EventGroup, ...]
    trials: DataFrame
    compare: Compare
    policy: Policy

    @property
    def sentence(self) -> str:
        """ "3 changes in 13 series over 20 runs on gpu-box"."""
        runs, series = (self.trials[name].nunique() for name in ("run_id", "series_id"))
        name = str(self.trials["machine"].iloc[-1])
        measured = f"{count(series)} series over {plural(runs, 'run')} on {name}"
        return f"{plural(len(self.groups), 'change')} in {measured}"

    @property
    def is_worse(self) -> bool:
        """As `is_worse_at_last`; what the machine explains is set aside, as `compare` and `gate` do."""
        of_builds = [group for group in self.groups if group.cause is not CauseClass.MACHINE]
        return is_worse_at_last(event for group in of_builds for event in group.events)

    def newest_two(self, database: Database) -> Comparison | None:
        """The verdict of `gate` on the newest run, of too few runs for a history; None where it and the one
        before are not among these.
        """
        runs = set(self.trials["run_id"].unique())
        if len(runs) >= self.policy.history.fewest_runs or builds_interleaved(self.trials):
            return None
        newest, before, _ = newest_runs(database)
        if before is None or not {*newest.run_ids, *before.run_ids} <= runs:
            return None
        try:
            return self.compare(before, newest)
        except VerdictError:
            return None

    def document(self, more: str = "") -> dict[str, Any]:
        """What `history --json` prints without a case; `more` follows the sentence."""
        newest = self.trials.iloc[-1]
        return {
            "schema": SCHEMA,
            "machine": {"id": str(newest["machine_id"]), "name": str(newest["machine"])},
            "sentence": f"{self.sentence}.{more}",
            "groups": [group.model_dump(mode="json") for group in self.groups],
            "policy": self.policy.to_json(),
        }


def machine_steps(
    database: Database, filters: Filters, policy: Policy, *, machine: str | None = None
) -> MachineSteps:
    """Of the machine with most runs that `filters` let through, or of `machine`.

    Raises NotFoundError where nothing fits.
    """
    here = filters if machine is None else replace(filters, machines=(machine,))
    require_stored(database, here)
    most = most_runs(database, here)
    if most is not None:
        here = replace(filters, machines=(most,))
    trials = trials_frame(database, here)
    if trials.empty:
        where = "" if machine is None else f" on machine {machine}"
        raise NotFoundError(f"No stored trial{where} fits these filters.", "See `compilewatch list runs`.")
    machine_id = str(trials["machine_id"].iloc[-1])
    compare = partial(gateway.compare, database, filters=filters, machine_id=machine_id, policy=policy)
    return MachineSteps(machine_history(trials, compare, policy), trials, compare, policy)


class _NewestRuns(NamedTuple):
    """The newest run, the one before it if there is one, and whether they come from another tool."""

    newest: Selection
    before: Selection | None
    imported: bool


def newest_runs(
    database: Database, *, only_newest: bool = False, machines: Collection[str] = ()
) -> _NewestRuns:
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
    return _NewestRuns(last, before, imported=not measured)


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
