"""Runs that took turns on one device: what the machine did that hour is in all of them and cancels."""

from __future__ import annotations

import numpy as np
from pandas import DataFrame
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from db.metrics.groups import Bools, Ints


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
    machine = trials["machine_id"].astype("str")
    spans = DataFrame(
        {"run": run, "start": trials["started_at"], "end": trials["ended_at"], "machine": machine}
    )
    first, second = np.nonzero(np.triu(_each_in_the_middle_of_the_other(spans), k=1))
    pairs = zip(first.tolist(), second.tolist(), strict=True)
    turns = np.array([_never_at_once(spans, a, b) for a, b in pairs], np.bool_)
    joined = coo_array((np.ones(sum(turns)), (first[turns], second[turns])), shape=(count, count))
    return connected_components(joined, directed=False)[1].astype(np.int64)[run]


def _each_in_the_middle_of_the_other(spans: DataFrame) -> Bools:
    """Pairs of runs of one machine, shape (runs, runs)."""
    runs = spans.groupby("run").agg(
        start=("start", "min"), middle=("start", "median"), end=("end", "max"), machine=("machine", "first")
    )
    start, middle, end = (runs[name].to_numpy() for name in ("start", "middle", "end"))
    machine = runs["machine"].factorize()[0]
    within = (start[:, None] <= middle[None, :]) & (middle[None, :] <= end[:, None])
    result: Bools = within & within.T & (machine[:, None] == machine[None, :])
    return result


def _never_at_once(spans: DataFrame, first: int, second: int) -> bool:
    both = spans[spans["run"].isin([first, second])].sort_values(["start", "end"])
    if both["end"].isna().any():
        return False
    change = both["run"].to_numpy()[1:] != both["run"].to_numpy()[:-1]
    begun, ended = both["start"].to_numpy()[1:], both["end"].to_numpy()[:-1]
    return bool((begun >= ended)[change].all())
