"""A race between candidates: which costs least, each measured no longer than it takes to tell.

A trial gives the log cost of one candidate against eager in the same process, so that a machine that is
slow for a minute is slow for both. Where eager differs between processes by itself, by luck of the heap, a
candidate would win by a slow eager beside it: candidates are told from each other by as much of eager's
differences as they follow (a control variate: Lavenberg and Welch 1981, Management Science 27(3), 322-335),
found by regression over the race and shrunk towards all of it. After each trial its candidate is looked at.
One that is shown to cost more than another leaves for good; one that is shown to be better than the leader by
at most the margin rests.

The best candidate leaves wrongly in `level` of all races at most, however long they last and however many
take part: at look k of n candidates each of its n - 1 tests has `level` x share of look k / (n - 1), and the
shares of all looks are 1 together (alpha spending, see `db.judge.statistics.looks`). What is shown to be
faster than eager is shown by the same tests: of races among equals `level` promise something.

What is measured next is what tells most for its price, compilation included: a trial counts for the square
root of its price, and a difference is worth trials by its inverse square (Chen et al. 2000, Discrete Event
Dynamic Systems 10, 251-270; differences are held between one margin and two).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from statistics import fmean

import numpy as np
import scipy
from numpy.typing import NDArray

from compilewatch.db.judge.policy import Policy
from compilewatch.db.judge.significance import FEWEST_DF, Moderated, moderate
from compilewatch.db.judge.statistics.looks import share_of_look
from compilewatch.db.metrics.groups import Floats

FEWEST = 2
"""Trials of a candidate before it is looked at."""
ALONE = 2.0
"""Margins by which one trial alone must be ahead to be the choice (others: docs/measured/advise.md)."""
_FOLLOWED = 0.2
"""Spread of the share of eager's differences that candidates do not follow, before anything is measured."""
_WITHIN = 6
"""Trials beyond the first of their candidates from which on these alone tell that share."""
_MOST_MORE = 10_000
"""Trials beyond which nobody is told how many would decide."""


class Left(StrEnum):
    """Why a candidate is no longer in a race: shown to cost more than another, its result is wrong, or it
    cannot be measured.
    """

    WORSE = "worse"
    WRONG = "wrong"
    FAILED = "failed"


@dataclass(frozen=True)
class Difference:
    """Log cost of a candidate less that of another, with its standard error and degrees of freedom."""

    value: float
    error: float
    df: float

    def p_above(self, bound: float) -> float:
        """One-sided p of being no more than `bound`."""
        if not self.error:
            return 0.0 if self.value > bound else 1.0
        return float(scipy.special.stdtr(self.df, (bound - self.value) / self.error))


class Race:
    """The candidates by name, `eager` among them. With `eager_is_exact` log costs are against eager in the
    same process, and eager has cost 0 without a trial; else eager is measured like the others.

    The same trials in the same order make the same race: one that was interrupted goes on from its trials.
    """

    def __init__(
        self,
        candidates: Sequence[str],
        policy: Policy,
        *,
        eager: str,
        eager_is_exact: bool = True,
        level: float = 0.05,
        margin: float = 0.02,
    ) -> None:
        self._names = list(dict.fromkeys((eager, *candidates)))
        self._policy = policy
        self._level = level
        self._eager = eager
        self._exact = {eager} if eager_is_exact else set()
        self.margin = math.log1p(margin)
        self._values: dict[str, list[float]] = {name: [] for name in self._names}
        self._eagers: dict[str, list[float]] = {name: [] for name in self._names}
        self._adjusted: dict[str, list[float]] = {name: [] for name in self._names}
        self._paired: Moderated | None = None
        self._noise: Moderated | None = None
        self._df = 0.0
        self._at_look: dict[str, tuple[float, float]] = {}
        self.left: dict[str, Left] = {}
        """Who is out, in the order of leaving."""
        self.faster: set[str] = set()
        """Who is shown to cost less than eager at its last look."""

    @property
    def running(self) -> list[str]:
        """Who has not left."""
        return [name for name in self._names if name not in self.left]

    def trials(self, name: str) -> int:
        """Trials of a candidate that count."""
        return len(self._values[name])

    def mean(self, name: str) -> float:
        """Its mean log cost, as candidates are told from each other; infinite without a trial."""
        return self._mean(self._adjusted, name)

    def _mean(self, values: Mapping[str, Sequence[float]], name: str) -> float:
        if values[name]:
            return fmean(values[name])
        return 0.0 if name in self._exact else math.inf

    @property
    def leader(self) -> str:
        """The lowest mean among those that run, the first of equals; eager before anything is measured."""
        return min(self.running, key=self.mean, default=self._eager)

    def leave(self, name: str, why: Left) -> None:
        """It is taken out, whatever it costs."""
        self.left.setdefault(name, why)
        self.faster.discard(name)

    def note(self, name: str, log_cost: float, log_eager: float = 0.0) -> None:
        """One more trial of a candidate, which is looked at. `log_eager` is the log cost of eager in the same
        process; 0 where costs are not against it.
        """
        self._values[name].append(log_cost)
        self._eagers[name].append(log_eager)
        self._adjusted = self._adjust()
        self._paired, self._noise = self._moderated(self._values), self._moderated(self._adjusted)
        if name in self.left or self.trials(name) < FEWEST:
            return
        level = self._level_of(name)
        self.faster.discard(name)
        tested = self._difference(name, self._eager)
        if tested is not None and name != self._eager and self._counted(self._eager) >= FEWEST:
            half = float(scipy.special.stdtrit(tested.df, 1.0 - level)) * tested.error
            self._at_look[name] = tested.value - half, tested.value + half
            if tested.value + half < 0.0:
                self.faster.add(name)
        if any(self._is_above(name, other, level) for other in self.running):
            self.leave(name, Left.WORSE)

    @property
    def resting(self) -> list[str]:
        """Who runs on and is shown to be at most the margin better than the leader."""
        leader = self.leader
        return [name for name in self.running if name != leader and self._is_no_better(name, leader)]

    @property
    def contenders(self) -> list[str]:
        """The leader and who may still be better than it by more than the margin; one alone ends the race."""
        out = set(self.resting)
        if self.leader in self.faster:
            # It has no trial of its own to leave after.
            out |= self._exact
        return [name for name in self.running if name not in out]

    @property
    def is_decided(self) -> bool:
        """Whether more trials would change nothing that matters."""
        return len(self.contenders) == 1 and not self._is_promise_open()

    def next_up(self, price_s: Mapping[str, float], remaining_s: float = math.inf) -> str | None:
        """What to measure now, by the price of a trial in seconds; None where it is decided or nothing is
        expected to end within `remaining_s`.

        Each once, in the order of the candidates; then what tells most for its price.
        """
        if self.is_decided:
            return None
        leader, contenders = self.leader, self.contenders
        in_time = [
            name for name in contenders if name not in self._exact and price_s.get(name, 1.0) <= remaining_s
        ]
        return min(in_time, key=lambda name: self._weight(name, leader, contenders, price_s), default=None)

    def choice(self) -> str:
        """The candidate to take now: of those that are shown to cost less than eager the lowest mean, else
        eager. The leader goes before it where each of its trials is ahead of eager, and they are ahead of it
        on average by the margin, or where it has one trial by two.
        """
        if self.left.get(self._eager) in (Left.WRONG, Left.FAILED):
            return self.leader
        shown = [name for name in self.running if name in self.faster]
        settled, leader = min(shown, key=self.mean, default=self._eager), self.leader
        values, eagers = self._adjusted[leader], self._adjusted[self._eager] or [0.0]
        needed = self.margin * (1.0 if len(values) >= FEWEST else ALONE)
        is_ahead = bool(values) and max(values) < min(eagers)
        return leader if is_ahead and self.mean(settled) - self.mean(leader) > needed else settled

    def against_eager(self, name: str) -> tuple[float, tuple[float, float] | None]:
        """How many times the cost of eager it has, and the interval of its newest look, which holds with the
        race's confidence over all looks and candidates; None for the interval before it was looked at.
        """
        ends = self._at_look.get(name)
        interval = None if ends is None else (math.exp(ends[0]), math.exp(ends[1]))
        paired = [self._mean(self._values, each) for each in (name, self._eager)]
        return math.exp(paired[0] - paired[1]), interval

    def more_trials(self, name: str) -> int | None:
        """Trials more, of it and of the leader, that would tell it from the leader, and the leader from
        eager, if things are as measured; 0 where that is told, None where nothing tells or it takes too many.
        """
        leader = self.leader
        other = self._eager if name == leader else leader
        tested = self._difference(name, other)
        if tested is None:
            return None
        if name not in self.contenders or (name == leader and not self._is_promise_open()):
            return 0
        gap = max(abs(tested.value), abs(tested.value + self.margin))
        for more in _doubling(_MOST_MORE):
            n = self.trials(name) + more
            level = self._level / (len(self._names) - 1) * float(share_of_look(np.array(n - 1)))
            factor = math.sqrt(max(self.trials(name), 1) / n)
            if float(scipy.special.stdtrit(tested.df + more, 1.0 - level)) * tested.error * factor <= gap:
                return more
        return None

    def _is_promise_open(self) -> bool:
        """Whether the leader alone is left and it is not shown whether it costs less than eager."""
        leader = self.leader
        if leader == self._eager or leader in self.faster or self.left.get(self._eager) is not None:
            return False
        return not self._is_no_better(leader, self._eager)

    def _weight(
        self, name: str, leader: str, contenders: Sequence[str], price_s: Mapping[str, float]
    ) -> float:
        """Who has least is measured next; 0 before the first trial."""
        known = [other for other in contenders if self._counted(other) and other != leader]
        gaps = {other: self.mean(other) - self.mean(leader) for other in known}
        gap = min(gaps.values(), default=0.0) if name == leader else gaps.get(name, 0.0)
        worth = min(max(gap, self.margin), 2.0 * self.margin) ** 2
        weight = math.sqrt(max(1, len(known))) if name == leader else 1.0
        return self.trials(name) * math.sqrt(price_s.get(name, 1.0)) * worth / weight

    def _level_of(self, name: str) -> float:
        """Of one test at its newest look."""
        share = float(share_of_look(np.array(max(self.trials(name), FEWEST) - FEWEST + 1)))
        return self._level * share / (len(self._names) - 1)

    def _is_above(self, name: str, other: str, level: float) -> bool:
        """Whether a candidate is shown to cost more than another at this level."""
        if name == other or min(self._counted(name), self._counted(other)) < FEWEST:
            return False
        tested = self._difference(name, other)
        return tested is not None and tested.p_above(0.0) < level

    def _is_no_better(self, name: str, leader: str) -> bool:
        """Whether it is shown to be at most the margin better than the leader: at the whole level, since a
        mistake costs little more than the margin, and nobody is promised anything.
        """
        if min(self._counted(name), self._counted(leader)) < FEWEST:
            return False
        tested = self._difference(name, leader)
        return tested is not None and tested.p_above(-self.margin) < self._level

    def _counted(self, name: str) -> float:
        return math.inf if name in self._exact else self.trials(name)

    def _difference(self, name: str, other: str) -> Difference | None:
        """None where nothing tells the noise of one of the two, or one degree of freedom alone. Against eager
        by the pairs alone: what is promised is what a comparison of the stored trials says.
        """
        is_paired = self._eager in (name, other)
        noise, values = (self._paired, self._values) if is_paired else (self._noise, self._adjusted)
        if noise is None:
            return None
        squares, total = 0.0, 0.0
        for each in (name, other):
            place, n = self._names.index(each), self._counted(each)
            if n == math.inf:
                continue
            df = float(noise.df[place])
            if not n or df <= 0:
                return None
            square = float(noise.variance[place]) / n
            total += square
            squares += square**2 / df
        # What the candidates share counts once.
        df = min(total**2 / squares, self._df) if squares else math.inf
        if df < FEWEST_DF:
            return None
        return Difference(self._mean(values, name) - self._mean(values, other), math.sqrt(total), df)

    def _adjust(self) -> dict[str, list[float]]:
        """The log costs without the share of eager's departures from its mean that no candidate follows."""
        names = [name for name in self._names if self._values[name]]
        places = np.repeat(np.arange(len(names)), [self.trials(name) for name in names])
        costs, eagers = (
            np.array([each for name in names for each in of[name]]) for of in (self._values, self._eagers)
        )
        groups = len(names) if len(costs) - len(names) >= _WITHIN else 1
        x, y = (_centred(each, places if groups > 1 else 0 * places) for each in (eagers, costs))
        squares, df = float(x @ x), len(costs) - groups - 1
        if df < 1 or not squares:
            return {name: list(values) for name, values in self._values.items()}
        slope = -float(x @ y) / squares
        rest = y + slope * x
        weight = squares / (squares + float(rest @ rest) / df / _FOLLOWED**2)
        share = min(1.0, max(0.0, weight * slope))
        adjusted = iter((costs + share * (eagers - eagers.mean())).tolist())
        return {name: [next(adjusted) for _ in self._values[name]] for name in self._names}

    def _moderated(self, of: Mapping[str, Sequence[float]]) -> Moderated:
        """The noise of one trial of each candidate, shrunk as the judge shrinks that of cases, and of few
        trials no less than that of the noisiest candidate: two may lie close together by chance.
        """
        values = [of[name] for name in self._names]
        df: Floats = np.array([max(len(each) - 1.0, 0.0) for each in values])
        own = np.array([np.var(each, ddof=1) if len(each) > 1 else np.nan for each in values])
        self._df, policy = float(np.sum(df)), self._policy
        limits = {"df_limit": policy.prior_df_limit, "outlier_level": policy.outlier_level}
        noise = moderate(own, df, floor=policy.noise_floor**2, **limits)
        few = df + 1.0 < policy.few_trials
        noisiest = float(np.nanmax(own)) if np.isfinite(own).any() else 0.0
        return replace(noise, variance=np.where(few, np.maximum(noise.variance, noisiest), noise.variance))


def _centred(values: Floats, groups: NDArray[np.intp]) -> Floats:
    """Each less the mean of its group."""
    means: Floats = np.bincount(groups, values) / np.bincount(groups)
    centred: Floats = values - means[groups]
    return centred


def _doubling(most: int) -> list[int]:
    """1, 2, 3, 4, 6, 8, 12 and so on, up to `most`."""
    steps = sorted({2**n for n in range(15)} | {3 * 2**n for n in range(14)})
    return [each for each in steps if each <= most]
