"""The one way to a verdict between two builds or runs, for commands, pages, reports and the API."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pandas import DataFrame, Timestamp

from compilewatch.db.columns.metrics import with_test
from compilewatch.db.engine.session import Database
from compilewatch.db.judge.compare.comparable import MatchedCases
from compilewatch.db.judge.compare.measured import columns_of
from compilewatch.db.judge.compare.sides import Selection, VerdictError
from compilewatch.db.judge.compare.upgrade import compare_builds
from compilewatch.db.judge.compare.whole import sentences
from compilewatch.db.judge.policy import Policy
from compilewatch.db.judge.results import Comparison
from compilewatch.db.judge.statistics.noise_floor import NoiseFloor
from compilewatch.db.queries.comparison import past_frame, sides_frame
from compilewatch.db.queries.run_parts import are_until_decided
from compilewatch.db.queries.selection import Filters
from compilewatch.db.queries.trials import validation_trials
from compilewatch.db.records.vocabulary import Metric
from compilewatch.db.verdicts.noise_floors import floors_by_machine

SEARCHED_FACTOR = 10
"""A case's past is looked for among this many times `Policy.history_runs` runs of its machine. A case that
ran in none of them has no past that tells the noise of today; so a new case does not make all be read."""

VALIDATIONS = 3
"""The newest validation of a machine may have broken off before it had a figure."""

_OF_SERIES = ["series_id", "machine_id", "workload_id", "strategy_id", "strategy_kind"]


def compare(
    database: Database,
    base: Selection,
    head: Selection,
    filters: Filters = Filters(),  # noqa: B008
    *,
    machine_id: str | None = None,
    policy: Policy | None = None,
    asked: Sequence[Metric] = (),
    remarks: tuple[str, ...] = (),
) -> Comparison:
    """Judge `head` against `base` over the trials that `filters` let through.

    Both sides are read whole. Of the past, each case that matches gets the `Policy.history_runs` runs nearest
    to the newest trial of the head, on the same machine and through the same filters, runs before it first.
    Nothing else is read, however long the history is.

    `machine_id`: the machine that is asked about, also where `filters` name just one; no trial of another
    takes part. Where none is named, the machine with most matched cases is judged and `left_out` names the
    others. `asked`: further metrics, as `compare_builds` takes them. `remarks` is of the choice of the sides
    (`db.verdicts.sides.Sides`). Raises VerdictError where a side has no trial or a trial is on both sides.
    """
    policy = policy or Policy()
    if machine_id is not None:
        filters = replace(filters, machines=(machine_id,))
    with database.read() as connection:
        sides = sides_frame(connection, base, head, filters)
        _require_both_sides(sides, base, head, filters)

        def past(matched: MatchedCases) -> DataFrame:
            trials = matched.trials
            newest: Timestamp = trials.loc[trials["side"] == 1, "started_at"].max()
            runs = max(policy.history_runs, policy.long_history_runs)
            return past_frame(
                connection,
                trials[_OF_SERIES].drop_duplicates("series_id"),
                newest.to_pydatetime(),
                replace(filters, machines=(str(matched.machine_id),)),
                runs=runs,
                searched=SEARCHED_FACTOR * runs,
                but=tuple(sides["run_id"].unique()),
                further=columns_of(with_test(asked)),
            )

        def noise_floors(machine_id: str) -> tuple[NoiseFloor, ...]:
            trials = validation_trials(connection, machine_id, runs=VALIDATIONS)
            return floors_by_machine(trials).get(machine_id, ())

        machine = filters.machines[0] if len(filters.machines) == 1 else None
        of_head = sides.loc[head.mask(sides), "run_id"].unique().tolist()
        comparison = compare_builds(
            sides,
            base,
            head,
            policy,
            history=past,
            machine_id=machine,
            noise_floors=noise_floors,
            asked=asked,
            until_decided=are_until_decided(connection, of_head),
        )
    if not remarks:
        return comparison
    chosen = comparison.model_copy(update={"said": remarks})
    return chosen.model_copy(update={"sentences": sentences(chosen)})


def _require_both_sides(sides: DataFrame, base: Selection, head: Selection, filters: Filters) -> None:
    """A side that is stored and has none of the cases asked for is not one that is not stored."""
    for side in (base, head) if filters != Filters() else ():
        if not side.mask(sides).any():
            raise VerdictError(f"No trial of {side.name} fits these filters.", "Leave out one of them.")
