"""Runs that took turns on one device: what the machine did that hour is in all of them and cancels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from pandas import DataFrame, Series
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from db.metrics.groups import Bools, Floats, Groups, Ints


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
    near = _each_in_the_middle_of_the_other(spans) & (machine[:, None] == machine[None, :])
    first, second = np.nonzero(np.triu(near, k=1))
    pairs = zip(first.tolist(), second.tolist(), strict=True)
    turns = np.array([_never_at_once(spans, a, b) for a, b in pairs], np.bool_)
    joined = coo_array((np.ones(sum(turns)), (first[turns], second[turns])), shape=(count, count))
    return connected_components(joined, directed=False)[1].astype(np.int64)[run]


def _microseconds(moments: Series) -> Floats:
    """Since 1970; of the centuries around it every one is a float."""
    found = moments.astype("datetime64[us, UTC]").to_numpy(dtype="datetime64[us]")
    return np.where(np.isnat(found), np.nan, found.astype(np.int64))


def _each_in_the_middle_of_the_other(spans: _Spans) -> Bools:
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
