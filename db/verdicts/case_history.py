"""The history of one case, judged: its steps, in time or from release to release, and what stands at last."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

from pandas import DataFrame

from compilewatch.db.engine.session import Database
from compilewatch.db.errors import NotFoundError, did_you_mean
from compilewatch.db.judge.compare.sides import Selection, VerdictError
from compilewatch.db.judge.decide_series import End, decide_end
from compilewatch.db.judge.history.counts import exact_events
from compilewatch.db.judge.history.events import Cut, find_cuts
from compilewatch.db.judge.history.machine import Compare, ReleaseStep, release_steps
from compilewatch.db.judge.history.series import SeriesHistory, judge_series, withdrawals
from compilewatch.db.judge.policy import Policy
from compilewatch.db.judge.results import ChangeEvent, Row
from compilewatch.db.judge.sequence import builds_interleaved, in_reading_order
from compilewatch.db.queries.history_points import points_by_run
from compilewatch.db.queries.selection import Filters
from compilewatch.db.queries.trials import trials_frame
from compilewatch.db.records.trial import SourceKind
from compilewatch.db.records.vocabulary import Metric, Verdict
from compilewatch.db.units import plural
from compilewatch.db.verdicts import gateway


@dataclass(frozen=True)
class CaseHistory:
    """One metric of one case. `exact` are the steps of its counts, `withdrawn` announcements that were taken
    back, `versions` the edits of the workload that it was judged across. `newest` is the verdict on the
    newest run against the one before, where there are too few for a history.
    """

    series: SeriesHistory
    releases: tuple[ReleaseStep, ...]
    exact: tuple[ChangeEvent, ...]
    withdrawn: tuple[ChangeEvent, ...]
    versions: tuple[Cut, ...]
    newest: Row | None
    runs: int
    """Under today's conditions, without builds that took turns: what came before the last cut is another
    series.
    """
    is_by_release: bool
    """Whether the last release decides: builds took turns, and there are too few other runs."""

    def verdict(self, policy: Policy) -> Verdict:
        """What stands at its end (`decide_end`)."""
        start = self.series.cuts[-1].index if self.series.cuts else 0
        end = End(
            events=[event for event in self.series.events if event.index >= start],
            drift=None if self.series.drift is None else self.series.drift.verdict,
            release=self.releases[-1].row if self.releases else None,
            newest=self.newest,
            runs=self.runs,
            by_release=self.is_by_release,
        )
        return decide_end(end, policy)


def case_history(
    database: Database,
    points: DataFrame,
    trials: DataFrame,
    metric: Metric,
    policy: Policy,
    *,
    reference: str | None = None,
    across_versions: bool = False,
) -> CaseHistory:
    """Of `points` in the order in which they are read; `trials` are those of the workload on the machine.

    Releases are judged as `compare` does: among all cases that were measured with them. `reference`: the
    build of slow drift.
    """
    newest = points.iloc[-1]
    case = str(newest["workload_id"]), str(newest["strategy_id"])
    compare = partial(
        gateway.compare, database, machine_id=str(newest["machine_id"]), policy=policy, asked=(metric,)
    )
    versions = tuple(find_cuts(points[["workload_version"]])) if across_versions else ()
    if versions:
        points = points.assign(workload_version=newest["workload_version"])
    series = judge_series(points, metric, policy, reference_build=reference)
    interleaved = builds_interleaved(trials)
    if interleaved and "by_turns" not in points:
        # Builds that took turns changed nothing in time: their releases say what changed.
        series = series.model_copy(update={"events": ()})
    releases = release_steps(trials, compare, *case, metric)
    in_time: DataFrame = points.iloc[series.cuts[-1].index if series.cuts else 0 :]
    if "by_turns" in points:
        in_time = in_time[~in_time["by_turns"]]
    is_short = len(in_time) < policy.history.fewest_runs
    of_series = trials[trials["series_id"].isin({str(each) for each in points["series_id"]})]
    return CaseHistory(
        series=series,
        releases=releases,
        exact=tuple(event for event in exact_events(of_series, policy) if event.metric is not metric),
        withdrawn=() if interleaved else withdrawals(points, metric, policy),
        versions=versions,
        newest=_newest_step(in_time, compare, case, metric) if is_short and not releases else None,
        runs=len(in_time),
        is_by_release=bool(releases) and ("by_turns" not in points or is_short),
    )


def _newest_step(points: DataFrame, compare: Compare, case: tuple[str, str], metric: Metric) -> Row | None:
    """The verdict on the newest run of a case against the one before, as `compare` has it."""
    runs = list(dict.fromkeys(points["run_id"].astype(str)))[-2:]
    if len(runs) < 2:
        return None
    try:
        comparison = compare(*(Selection(name=run, run_ids=(run,)) for run in runs))
    except VerdictError:
        return None
    rows = comparison.with_requested().rows
    return next((row for row in rows if row.case.ids == case and row.metric is metric), None)


def chosen_points(
    database: Database, workload: str, strategy: str, machine: str | None
) -> tuple[DataFrame, DataFrame, list[str]]:
    """The points of one series as they are read, the trials of its workload there, and a sentence for what
    else has the same name. Imported results are read only where nothing was measured, on `machine` or, where
    that is None, anywhere. Raises NotFoundError where nothing has these names.
    """
    named = Filters(workloads=(workload,))
    points = points_by_run(database, named, ("strategy", "machine_id", "source_kind"))
    mine = points[points["strategy"] == strategy]
    if mine.empty:
        known = sorted(set(points["strategy"]))
        measured = f"Measured with: {', '.join(known) or 'nothing'}."
        raise NotFoundError(
            f"{workload} was never measured with {strategy!r}.", did_you_mean(strategy, known, measured)
        )
    # By default the machine with the longest history, measured before imported.
    longest = _measured_first(mine)["machine_id"].value_counts().index[0]
    chosen = str(longest) if machine is None else machine
    there = replace(named, machines=(chosen,))
    on_machine = points_by_run(database, replace(there, strategies=(strategy,)))
    if on_machine.empty:
        raise NotFoundError(
            f"{workload} / {strategy} was never measured on machine {chosen}.",
            f"Measured on {', '.join(mine['machine_id'].value_counts().index)}.",
        )
    here = _of_one_source(on_machine)
    same = _like_the_newest(here)
    left_out = list(_elsewhere(mine, chosen)) if machine is None else []
    if imported := len(on_machine) - len(here):
        left_out.append(f"{plural(imported, 'imported point')} under this name left out.")
    if len(same) < len(here):
        other = plural(len(here) - len(same), "point")
        left_out.append(f"{other} of other sizes, dtypes or options under this name left out.")
    # Eager's trials come along: they are the control of compiled ones that have none of their own.
    trials = trials_frame(database, there)
    of_kind = trials[trials["source_kind"] == here["source_kind"].iloc[-1]]
    of_series = of_kind[of_kind["series_id"].isin(set(same["series_id"]))]
    return in_reading_order(same.reset_index(drop=True), of_series), of_kind, left_out


def _measured_first(points: DataFrame) -> DataFrame:
    """The measured ones among `points`; all of them where nothing was measured."""
    measured: DataFrame = points[points["source_kind"] == SourceKind.MEASURED]
    return points if measured.empty else measured


def _of_one_source(points: DataFrame) -> DataFrame:
    """What was measured; where nothing was, the imports of the format that brought the newest point."""
    first = _measured_first(points)
    newest = first.iloc[-1]
    if newest["source_kind"] == SourceKind.MEASURED:
        return first
    chosen: DataFrame = first[first["source_name"] == newest["source_name"]]
    return chosen


def _elsewhere(points: DataFrame, chosen: str) -> Iterator[str]:
    """Sentences for the machines beside the chosen one: those that measured, and those of imports alone."""
    of_kind = points.groupby("source_kind")["machine_id"].unique()
    measured, imported = (
        set(of_kind.get(kind, ())) - {chosen} for kind in (SourceKind.MEASURED, SourceKind.IMPORTED)
    )
    if measured:
        yield f"{plural(len(measured), 'more machine')} measured it too; name one with --machine."
    if alone := imported - measured:
        machines = plural(len(alone), "more machine")
        yield f"Imported results of {machines} left out; name one with --machine."


def _like_the_newest(points: DataFrame) -> DataFrame:
    """The points that measured what the newest one does, whatever the version of the workload's code."""
    newest = points.iloc[-1]
    alike = points["strategy_id"] == newest["strategy_id"]
    for name in ("task", "batch_size", "shape", "dtype", "ranks"):
        alike &= points[name].map(str) == str(newest[name])
    chosen: DataFrame = points[alike]
    return chosen
