"""Upgrade verdict: two builds, every matched case, every metric."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from pandas import DataFrame

from compilewatch.db.columns.metrics import ASKED_METRICS
from compilewatch.db.judge.compare.advice import advice, trial_seconds
from compilewatch.db.judge.compare.asked import throughput_rows, with_test
from compilewatch.db.judge.compare.code import with_hashes
from compilewatch.db.judge.compare.comparable import GPU_METHODS, MatchedCases
from compilewatch.db.judge.compare.geomean_change import geomean_change
from compilewatch.db.judge.compare.judge_sides import judge_sides
from compilewatch.db.judge.compare.sides import Selection, as_selection, changed_components, describe_sides
from compilewatch.db.judge.compare.whole import sentences
from compilewatch.db.judge.decide import overall_verdict
from compilewatch.db.judge.policy import Policy
from compilewatch.db.judge.results import Comparison, Row
from compilewatch.db.judge.statistics.noise_floor import NoiseFloor
from compilewatch.db.metrics.eligibility import wild_trials
from compilewatch.db.metrics.groups import equal_to
from compilewatch.db.metrics.throughput import items_per_step
from compilewatch.db.records.vocabulary import Metric


def compare_builds(
    trials: DataFrame,
    base: Selection | str,
    head: Selection | str,
    policy: Policy | None = None,
    *,
    history: DataFrame | Callable[[MatchedCases], DataFrame] | None = None,
    machine_id: str | None = None,
    noise_floors: Callable[[str], Sequence[NoiseFloor]] = lambda _machine_id: (),
    asked: Sequence[Metric] = (),
    until_decided: bool = False,
) -> Comparison:
    """Judge `head` against `base`, metric by metric, over the cases that match.

    `trials` is a trials frame (`db.queries.trials.trials_frame`) holding both sides; a `str` side is a
    build id. `history` is a trials frame of the same series' other runs, and may be the same frame: compared
    trials are passed over; or what reads one once the cases are matched. With `machine_id` None the machine
    with most matched cases is taken; the others are named in `left_out`. `noise_floors` is asked for those
    of the machine where advice has no other noise to plan by. `asked` are further metrics, whose rows stand
    apart and decide nothing. With `until_decided` trials of the head were added and judged as they
    came: each number of them has its part of every level (`db.judge.statistics.looks`). Raises VerdictError
    when a side has no trial or a trial is on both sides.
    """
    policy, further = policy or Policy(), with_test(asked)
    base, head = as_selection(base), as_selection(head)
    judged = judge_sides(
        trials,
        base,
        head,
        policy,
        history=history,
        machine_id=machine_id,
        noise_floors=noise_floors,
        further=further,
        until_decided=until_decided,
    )
    matched, canaries = judged.matched, judged.context.canaries
    base_side, head_side = with_hashes(describe_sides(judged.sides, base, head), matched.trials, matched.case)
    every_row = tuple(judged.rows())
    rows = tuple(row for row in every_row if row.metric not in further)
    cases = len(matched.keys) - sum(matched.canary)
    comparison = Comparison(
        base=base_side,
        head=head_side,
        machine_id=matched.machine_id,
        machine=matched.machine,
        matched=cases,
        total=cases + len(matched.left_out),
        left_out=matched.left_out,
        geomean=geomean_change(judged, policy),
        rows=rows,
        asked=tuple(_asked_rows(matched, every_row, asked)),
        verdict=overall_verdict(rows, policy),
        changed_components=changed_components(base_side, head_side),
        canary_change=_relative(canaries.shown),
        host_canary_change=_relative(canaries.shown_host),
        timing=_gpu_methods(matched.trials),
        wild_trials=int(np.count_nonzero(wild_trials(matched.trials))),
        advice=advice(
            rows, matched.keys, trial_seconds(matched.trials, matched.case, len(matched.keys)), policy
        ),
        sentences=(),
        policy=policy,
    )
    return comparison.model_copy(update={"sentences": sentences(comparison)})


def _relative(change: float | None) -> float | None:
    return None if change is None else math.expm1(change)


def _gpu_methods(trials: DataFrame) -> tuple[str, ...]:
    """How the trials on a GPU were timed; nothing of those on a CPU."""
    if "timing_method" not in trials:
        return ()
    return tuple(method for method in GPU_METHODS if equal_to(trials["timing_method"], method).any())


def _asked_rows(matched: MatchedCases, rows: Sequence[Row], asked: Sequence[Metric]) -> Iterator[Row]:
    yield from (row for row in rows if row.metric in asked and row.metric in ASKED_METRICS)
    if Metric.THROUGHPUT in asked:
        latencies = [row for row in rows if row.metric is Metric.LATENCY]
        items = items_per_step(matched.trials)
        of_case = dict(zip(matched.case.tolist(), items.tolist(), strict=True))
        numbers = {key.ids: number for number, key in enumerate(matched.keys)}
        yield from throughput_rows(latencies, np.array([of_case[numbers[row.case.ids]] for row in latencies]))
