"""The difference of two sides, case by case: its size, its variance and what that variance rests on."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from compilewatch.db.judge.policy import Policy
from compilewatch.db.metrics.groups import Bools, Floats, Ints, numbered


@dataclass(frozen=True)
class Observations:
    """Trials of matched cases, one entry per trial. `side` is 0 (base) or 1 (head); `run` numbers the runs,
    those that took turns as one (`db.judge.sequence`); `order` sorts trials in time; `x` is a log
    value,
    never NaN.
    """

    case: Ints
    side: Ints
    run: Ints
    order: Ints
    x: Floats

    def with_values(self, x: Floats) -> Observations:
        """The trials that have a value, with it. `x`: log values, one per trial, NaN where there is none."""
        return replace(self, x=x).where(np.isfinite(x))

    def where(self, mask: Bools) -> Observations:
        """Those that the flags of `mask`, one per trial, choose."""
        return Observations(self.case[mask], self.side[mask], self.run[mask], self.order[mask], self.x[mask])


@dataclass(frozen=True)
class Contrasts:
    """Per case: `difference` = mean of log(head) - mean of log(base), NaN where a side is empty.

    Its variance is `scale` times the variance of one trial, estimated by `variance` with `df`, plus
    `run_scale` times the variance between runs (0 where the sides were interleaved). `paired` says where
    the variance is that of paired differences: less than a trial's own, which histories know. `level`, the
    mean log value of each side, and `trials` have shape (cases, 2). Each block weighs alike in both levels,
    so the difference is theirs.
    """

    difference: Floats
    scale: Floats
    variance: Floats
    df: Floats
    run_scale: Floats
    interleaved: Bools
    paired: Bools
    trials: Ints
    level: Floats


def contrast(observed: Observations, cases: int, policy: Policy) -> Contrasts:
    """Compare the sides within runs where runs hold both, else as wholes.

    A run with both sides is a block: whatever the machine did that night is in both and cancels (randomised
    blocks). Trials of other runs are left aside once the shared runs hold `policy.minimum_trials` a side.
    Where trials stand in pairs and the pairs take out more noise than the runs do, over all cases together,
    the variance is that of paired differences.
    """
    interleaved, mask = _shared_runs(observed, cases, policy.minimum_trials)
    used = observed.where(mask)
    in_blocks = interleaved[used.case]
    by_run = _blocked(used, np.where(in_blocks, used.run, 0), cases)
    paired = _paired(used, in_blocks, by_run, policy.pairing_gain)
    run_scale = np.where(interleaved, 0.0, _run_weights(used, cases))
    return replace(
        paired,
        run_scale=run_scale,
        interleaved=interleaved,
        trials=_count(used.case * 2 + used.side, 2 * cases).reshape(cases, 2),
    )


def _count(codes: Ints, size: int) -> Ints:
    return np.bincount(codes, minlength=size).astype(np.int64)


def _shared_runs(observed: Observations, cases: int, minimum_trials: int) -> tuple[Bools, Bools]:
    """Per case whether its sides are compared within runs, and per trial whether it takes part."""
    cell, cell_case = _cells(observed.case, observed.run)
    sides = _count(cell * 2 + observed.side, 2 * len(cell_case)).reshape(-1, 2)
    shared = (sides[:, 0] > 0) & (sides[:, 1] > 0)
    inside = np.stack([np.bincount(cell_case, sides[:, s] * shared, cases) for s in (0, 1)], axis=1)
    everything = np.stack([np.bincount(cell_case, sides[:, s], cases) for s in (0, 1)], axis=1)
    missed = (inside < np.minimum(minimum_trials, everything)) | (inside == 0)
    enough = ~(missed[:, 0] | missed[:, 1])
    return enough, ~enough[observed.case] | shared[cell]


def _cells(case: Ints, block: Ints) -> tuple[Ints, Ints]:
    """Number of each trial's (case, block) cell, and the case of each cell."""
    width = int(block.max()) + 1 if len(block) else 1
    keys, cell = numbered(case * width + block)
    return cell, keys // width


def _blocked(used: Observations, block: Ints, cases: int) -> Contrasts:
    """Within-block differences, weighted by their precision, and the residual variance around them.

    The weight of a block without one of the sides is 0.
    """
    cell, cell_case = _cells(used.case, block)
    index, size = cell * 2 + used.side, 2 * len(cell_case)
    n = np.bincount(index, minlength=size).astype(np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.bincount(index, used.x, size) / n
        residual = np.bincount(index, np.square(used.x - mean[index]), size)
        n2, mean2 = n.reshape(-1, 2), mean.reshape(-1, 2)
        weight = 1.0 / (1.0 / n2).sum(axis=1)
    shift = np.where(weight > 0, mean2[:, 1] - mean2[:, 0], 0.0)
    total = np.bincount(cell_case, weight, cases)
    with np.errstate(invalid="ignore", divide="ignore"):
        difference = np.where(total > 0, np.bincount(cell_case, weight * shift, cases) / total, np.nan)
        scale = np.where(total > 0, 1.0 / total, np.nan)
        # Of a side without another its own mean.
        weights = np.where((total > 0)[cell_case, None], weight[:, None], n2)
        level = [
            np.bincount(cell_case, of_side * np.nan_to_num(x), cases) / np.bincount(cell_case, of_side, cases)
            for of_side, x in zip(weights.T, mean2.T, strict=True)
        ]
    spread = weight * np.square(shift - np.nan_to_num(difference)[cell_case])
    squares = np.bincount(cell_case, residual.reshape(-1, 2).sum(axis=1) + spread, cases)
    inner = (n2 - 1).clip(0).sum(axis=1) + (weight > 0)
    freedom = np.bincount(cell_case, inner, cases).astype(np.float64) - (total > 0)
    with np.errstate(invalid="ignore", divide="ignore"):
        variance = np.where(freedom > 0, squares / freedom, np.nan)
    no, none = np.zeros(cases, dtype=np.bool_), np.zeros((cases, 2), dtype=np.int64)
    return Contrasts(
        difference, scale, variance, freedom, np.zeros(cases), no, no, none, np.stack(level, axis=1)
    )


def _paired(used: Observations, in_blocks: Bools, by_run: Contrasts, gain: float) -> Contrasts:
    """The variance of pairs in place of that of runs, for balanced cases, if pairs are worth it."""
    if not in_blocks.any():
        return by_run
    cases = len(by_run.difference)
    rank = _rank_within(used)
    pair = used.run * (int(rank.max(initial=0)) + 1) + rank
    cell, cell_case = _cells(used.case, pair)
    complete = _count(cell * 2 + used.side, 2 * len(cell_case)).reshape(-1, 2) == 1
    broken = np.bincount(cell_case, ~complete.all(axis=1), cases) > 0
    blocks = np.zeros(cases, dtype=np.bool_)
    blocks[used.case[in_blocks]] = True
    chosen = blocks & ~broken
    if not chosen.any():
        return by_run
    in_pairs = chosen[used.case]
    pairs = _blocked(used.where(in_pairs), pair[in_pairs], cases)
    known = chosen & (pairs.df > 0)
    if np.sum(pairs.df[known]) < 2 or not _pairs_are_calmer(pairs, by_run, known, gain):
        return by_run
    return replace(
        by_run,
        variance=np.where(known, pairs.variance, by_run.variance),
        df=np.where(known, pairs.df, by_run.df),
        paired=known,
    )


def _pairs_are_calmer(pairs: Contrasts, by_run: Contrasts, known: Bools, gain: float) -> bool:
    mine = np.sum((pairs.df * pairs.variance)[known]) / np.sum(pairs.df[known])
    theirs = np.sum((by_run.df * by_run.variance)[known]) / np.sum(by_run.df[known])
    return bool(mine < gain * theirs)


def _rank_within(used: Observations) -> Ints:
    """Position of each trial among those of its case, run and side, in time."""
    sorting = np.lexsort((used.order, used.side, used.run, used.case))
    cell, _ = _cells(used.case[sorting] * 2 + used.side[sorting], used.run[sorting])
    starts = np.flatnonzero(np.concatenate(([True], cell[1:] != cell[:-1]))) if len(cell) else cell
    lengths = np.diff(np.append(starts, len(cell)))
    rank = np.empty(len(cell), dtype=np.int64)
    rank[sorting] = np.arange(len(cell)) - np.repeat(starts, lengths)
    return rank


def _run_weights(used: Observations, cases: int) -> Floats:
    """Per case the sum over runs of the squared share of a side's trials: 2 for one run against one run."""
    cell, cell_case = _cells(used.case * 2 + used.side, used.run)
    n = np.bincount(cell).astype(np.float64)
    total = np.bincount(cell_case, n, 2 * cases)
    shares = np.square(n / total[cell_case])
    return np.bincount(cell_case // 2, shares, cases).astype(np.float64)
