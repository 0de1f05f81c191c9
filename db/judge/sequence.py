"""In which order the runs of a series are read: by time, or by release where builds took turns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from pandas import DataFrame, Series

from compilewatch.db.metrics.groups import Bools, Floats, Groups, Ints
from compilewatch.db.records.identity import stack_order

# Runs that took turns on one device: what the machine did that hour is in all of them and cancels.


@dataclass(frozen=True)
class _Spans:
    """Per trial its run (a number), and when it began and ended in microseconds; NaN where unknown."""

    run: Groups
    start: Floats
    end: Floats


def occasions(trials: DataFrame) -> Ints:
    """Per trial the number of its occasion: a run, or several runs of one machine that took turns.

    `compilewatch run` with several builds makes one run of each and alternates between them, as A B, B A.
    Two runs took turns when the middle of each lies within the time of the other and no trial of one ran
    while a trial of the other did: what runs at the same moment runs on different devices. Trials without an
    end (results of other tools) tell nothing of their order: each run is an occasion of its own.
    """
    run = trials["run_id"].astype("str").factorize()[0].astype(np.int64)
    count = int(run.max()) + 1 if len(run) else 0
    if count < 2 or trials["ended_at"].isna().all():
        return run
    start, end = (_microseconds(trials[name]) for name in ("started_at", "ended_at"))
    spans = _Spans(Groups(run, count), start, end)
    machine = trials["machine_id"].astype("str").factorize()[0][np.unique(run, return_index=True)[1]]
    near = _are_interleaved(spans) & (machine[:, None] == machine[None, :])
    first, second = np.nonzero(np.triu(near, k=1))
    pairs = zip(first.tolist(), second.tolist(), strict=True)
    interleaved = np.array([_never_at_once(spans, a, b) for a, b in pairs], np.bool_)
    joined = np.arange(count)
    for one, other in zip(first[interleaved], second[interleaved], strict=True):
        joined[joined == joined[other]] = joined[one]
    return np.unique(joined, return_inverse=True)[1].astype(np.int64)[run]


def _microseconds(moments: Series) -> Floats:
    """Since 1970; of the centuries around it every one is a float."""
    times = moments.astype("datetime64[us, UTC]").to_numpy(dtype="datetime64[us]")
    return np.where(np.isnat(times), np.nan, times.astype(np.int64))


def _are_interleaved(spans: _Spans) -> Bools:
    """Pairs of runs, shape (runs, runs)."""
    starts = spans.run.present(spans.start)
    start, middle = starts.quantile(0.0), np.floor(starts.quantile(0.5))
    end = spans.run.max(spans.end)
    within = (start[:, None] <= middle[None, :]) & (middle[None, :] <= end[:, None])
    result: Bools = within & within.T
    return result


def _never_at_once(spans: _Spans, first: int, second: int) -> bool:
    both = np.flatnonzero((spans.run.codes == first) | (spans.run.codes == second))
    order = both[np.lexsort((spans.end[both], spans.start[both]))]
    run, start, end = spans.run.codes[order], spans.start[order], spans.end[order]
    if np.isnan(end).any():
        return False
    change = run[1:] != run[:-1]
    return bool((start[1:] >= end[:-1])[change].all())


def by_turns(trials: DataFrame) -> Bools:
    """One flag per trial: it was measured by turns with trials of another build."""
    if trials.empty:
        return np.zeros(0, dtype=np.bool_)
    builds = trials["build_id"].astype("str").groupby(occasions(trials)).transform("nunique")
    flags: Bools = builds.to_numpy() > 1
    return flags


def turns_of_each(trials: DataFrame) -> Bools:
    """`by_turns` of every series by itself. Only those are looked at that have a run of several builds, or
    runs that were measured at the same time: of most histories none.
    """
    flags = np.zeros(len(trials), dtype=np.bool_)
    times = trials[["run_id", "build_id", "machine_id", "series_id", "started_at", "ended_at"]]
    run = times["run_id"].astype("str").factorize()[0].astype(np.int64)
    doubtful = times["build_id"].groupby(run).nunique().to_numpy() > 1
    runs = Groups(run, len(doubtful))
    start = -runs.max(-_microseconds(times["started_at"]))
    end = runs.max(_microseconds(times["ended_at"]))
    known = np.flatnonzero(~np.isnan(end))
    order = known[np.argsort(start[known], kind="stable")]
    # Against the latest end before it, and the earliest beginning after it.
    latest = np.maximum.accumulate(end[order])
    doubtful[order[1:][start[order][1:] <= latest[:-1]]] = True
    doubtful[order[:-1][end[order][:-1] >= start[order][1:]]] = True
    series = times["series_id"].astype("str").factorize()[0]
    wanted = np.isin(series, series[doubtful[run]])
    for rows in times[wanted].groupby(series[wanted]).indices.values():
        mine = np.flatnonzero(wanted)[rows]
        flags[mine] = by_turns(times.iloc[mine])
    return flags


def builds_interleaved(trials: DataFrame) -> bool:
    """Whether any two builds of a trials frame were measured side by side."""
    return bool(by_turns(trials).any())


def parts_by_turns(trials: DataFrame) -> frozenset[tuple[str, str]]:
    """The run and build of those trials that were measured by turns with another build."""
    turns = trials.loc[by_turns(trials), ["run_id", "build_id"]].drop_duplicates().astype("str")
    return frozenset(turns.itertuples(index=False, name=None))


def with_turns(points: DataFrame, parts: frozenset[tuple[str, str]]) -> DataFrame:
    """`points` with the flag `by_turns` of those `parts`: no step is searched among them."""
    mine = zip(points["run_id"].astype("str"), points["build_id"].astype("str"), strict=True)
    return points.assign(by_turns=np.array([part in parts for part in mine], dtype=np.bool_))


Pair = tuple[str, str]
Case = tuple[str, str]


def build_pairs(trials: DataFrame) -> dict[Pair, set[Case]]:
    """Of each build the next older one that it took turns with, and itself, the oldest release first.

    With the cases, by workload and strategy id, for which it is the next: one that the build between lacks is
    set against the build before that.
    """
    turns = trials[by_turns(trials)]
    if not len(turns):
        return {}
    order = release_order(turns)
    rank = {build: place for place, build in enumerate(order)}
    columns = [turns[name].astype("str").tolist() for name in ("workload_id", "strategy_id", "build_id")]
    beside: dict[Case, dict[object, set[str]]] = {}
    for workload, strategy, build, sitting in zip(*columns, occasions(turns).tolist(), strict=True):
        beside.setdefault((workload, strategy), {}).setdefault(sitting, set()).add(build)
    pairs: dict[Pair, set[Case]] = {}
    for case, sittings in beside.items():
        for head in set[str]().union(*sittings.values()):
            together = set[str]().union(*(each for each in sittings.values() if head in each))
            older = [build for build in together if rank[build] < rank[head]]
            if older:
                pairs.setdefault((max(older, key=rank.__getitem__), head), set()).add(case)
    return dict(sorted(pairs.items(), key=lambda item: (rank[item[0][1]], rank[item[0][0]])))


def release_order(frame: DataFrame) -> list[str]:
    """The build ids of a frame with the columns of a build, the oldest release first."""
    builds: list[dict[Any, Any]] = frame.drop_duplicates("build_id", keep="last").to_dict("records")
    in_order = sorted(builds, key=lambda build: (*stack_order(build), str(build["build_id"])))
    return [str(build["build_id"]) for build in in_order]


def in_reading_order(points: DataFrame, trials: DataFrame) -> DataFrame:
    """`points` (rows of `db.metrics.trend.series_points`, oldest first) as a history is read.

    Builds that took turns have no before and after in time: their points are ordered by release, those of one
    build by time. Beside other runs they are left in time, and flagged in a column `by_turns`: no step is
    searched among them. `trials` are the trials behind the points.
    """
    flags = by_turns(trials)
    if not flags.any():
        return points
    if not flags.all():
        return with_turns(points, parts_by_turns(trials))
    rank = {build: number for number, build in enumerate(release_order(points))}
    order = points["build_id"].astype("str").map(rank).sort_values(kind="stable").index
    return points.loc[order].reset_index(drop=True)
