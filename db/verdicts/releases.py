"""A series whose builds took turns has no points in time to search, but releases to compare."""

from __future__ import annotations

import itertools

from pandas import DataFrame

from db.verdicts.policy import Policy
from db.verdicts.results import Result, Row
from db.verdicts.sequence import builds_took_turns, release_order
from db.verdicts.sides import Selection, VerdictError
from db.verdicts.upgrade import compare_builds
from db.verdicts.vocabulary import Metric


class ReleaseStep(Result):
    """One metric of one case from a build to the next newer one that took turns with it."""

    base_build: str
    head_build: str
    base_torch: str
    head_torch: str
    row: Row


def release_steps(
    trials: DataFrame, workload_id: str, strategy_id: str, metric: Metric, policy: Policy | None = None
) -> tuple[ReleaseStep, ...]:
    """The upgrade verdict from each build to the next, oldest release first; empty where none took turns.

    `trials` is a trials frame of one machine: the case's and those of the workload's other strategies, which
    teach the judge how noisy it is.
    """
    if not builds_took_turns(trials):
        return ()
    builds = release_order(trials)
    torch = dict(zip(trials["build_id"].astype(str), trials["torch"].astype(str), strict=True))
    steps = []
    for base, head in itertools.pairwise(builds):
        before, after = (Selection(name=build, build_ids=(build,)) for build in (base, head))
        try:
            found = compare_builds(trials, before, after, policy, history=trials)
        except VerdictError:
            # All trials of one of them were cut short: the next release meets the one before it.
            continue
        for row in found.rows:
            case = row.case.workload_id, row.case.strategy_id
            if case == (workload_id, strategy_id) and row.metric is metric:
                steps.append(
                    ReleaseStep(
                        base_build=base,
                        head_build=head,
                        base_torch=torch[base],
                        head_torch=torch[head],
                        row=row,
                    )
                )
    return tuple(steps)
