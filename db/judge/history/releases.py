"""A series whose builds took turns has no points in time to search, but releases to compare."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from pandas import DataFrame

from compilewatch.db.judge.compare.sides import Selection, VerdictError
from compilewatch.db.judge.decide import MOVED
from compilewatch.db.judge.results import ChangeEvent, Comparison, Result, Row
from compilewatch.db.judge.sequence import Case, build_pairs
from compilewatch.db.records.ids import identity
from compilewatch.db.records.vocabulary import Metric

Compare = Callable[[Selection, Selection], Comparison]
"""The verdict on the second side against the first; raises VerdictError where there is none."""


class ReleaseStep(Result):
    """One metric of one case from a build to the next newer one that took turns with it."""

    base_build: str
    head_build: str
    base_torch: str
    head_torch: str
    row: Row


def release_comparisons(
    trials: DataFrame, compare: Compare, case: Case | None = None
) -> Iterator[tuple[str, str, Comparison, set[Case]]]:
    """The ids of each build that took turns and of the next older one that it did with, oldest release first,
    with the verdict between them and the cases for which it is the next, of all or of one `case`; nothing
    where no builds took turns. `trials` is a trials frame of one machine, which says what the builds are.
    """
    for (base, head), cases in build_pairs(trials).items():
        if case is not None and case not in cases:
            continue
        before, after = (Selection(name=build, build_ids=(build,)) for build in (base, head))
        try:
            yield base, head, compare(before, after), cases
        except VerdictError:
            # All trials of one of them were cut short: it has nothing to be judged by.
            continue


def release_steps(
    trials: DataFrame, compare: Compare, workload_id: str, strategy_id: str, metric: Metric
) -> tuple[ReleaseStep, ...]:
    """One metric of one case from each build to the next; empty where none took turns.

    `trials` is a trials frame of one machine, which says what the builds are.
    """
    torch = dict(zip(trials["build_id"].astype(str), trials["torch"].astype(str), strict=True))
    case = (workload_id, strategy_id)
    return tuple(
        ReleaseStep(base_build=base, head_build=head, base_torch=torch[base], head_torch=torch[head], row=row)
        for base, head, comparison, _ in release_comparisons(trials, compare, case)
        for row in comparison.with_asked().rows
        if row.case.ids == case and row.metric is metric
    )


def release_events(trials: DataFrame, compare: Compare) -> Iterator[ChangeEvent]:
    """What got worse or better from one release to the next, in every timed metric of every case.

    Builds that took turns have no moment of change, so an event has no time: those of one release belong
    together by its build.
    """
    case = ["workload_id", "strategy_id"]
    newest = trials[[*case, "series_id"]].drop_duplicates(case, keep="last").astype(str)
    series = {
        (workload, strategy): series_id for workload, strategy, series_id in newest.itertuples(index=False)
    }
    for _, head, comparison, cases in release_comparisons(trials, compare):
        for row in comparison.rows:
            moved = row.verdict in MOVED and row.case.ids in cases
            if not moved or row.p_value is None or row.base is None or row.head is None:
                continue
            series_id = series[row.case.ids]
            unique = {"series": series_id, "metric": row.metric.value, "build": head}
            yield ChangeEvent(
                event_id=identity(unique),
                series_id=series_id,
                metric=row.metric,
                machine_id=comparison.machine_id,
                workload=row.workload,
                strategy=row.strategy,
                strategy_kind=row.case.strategy_kind,
                build_id=head,
                index=0,
                announced_at=0,
                before=row.base,
                after=row.head,
                change=row.change,
                interval=row.interval,
                p_value=row.p_value,
                verdict=row.verdict,
                changed_components=comparison.changed_components,
                confounded=len(comparison.changed_components) > 1,
                reason=row.reason,
            )
