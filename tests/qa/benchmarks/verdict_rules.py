"""Simulated comparisons of two builds, and the rules of other tools to judge them by.

One comparison: `cases` cases, `trials` a side, log values of trials. A share of the cases changed by one of
the given effects, up or down. Noise models are those that repeated runs of real benchmarks show.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from compilewatch.db.columns.metrics import MEASURED_METRICS
from compilewatch.db.judge.decide import Decision, Evidence, decide
from compilewatch.db.judge.policy import Policy
from compilewatch.db.judge.statistics.contrast import Observations
from compilewatch.db.judge.statistics.evidence import examine_cases
from compilewatch.db.judge.statistics.noise import Past

FULL = os.environ.get("COMPILEWATCH_BENCH") == "full"
CASES = 300
ITERATIONS = 20
ITERATION_CV = 0.005
POLICY = Policy()
FAMILIES = 5
"""Metrics that a comparison on a CPU judges by tests."""

Floats = NDArray[np.float64]


def noise(kind: str, shape: tuple[int, int], generator: np.random.Generator) -> Floats:
    """Unit noise of shape (cases, trials in time order), about one standard deviation wide."""
    calm = generator.standard_normal(shape)
    if kind == "heavy tails":
        return generator.standard_t(3, shape) / np.sqrt(3.0)
    if kind == "bimodal":
        return (2.0 * (generator.random(shape) < 0.3) + 0.5 * calm) / 1.05
    if kind == "some bimodal":
        few = np.arange(shape[0])[:, None] % 5 == 0
        return calm + np.where(few, 3.0 * (generator.random(shape) < 0.3), 0.0)
    if kind == "outliers":
        return calm * np.where(generator.random(shape) < 0.03, 8.0, 1.0)
    if kind == "autocorrelated":
        for i in range(1, shape[1]):
            calm[:, i] = 0.5 * calm[:, i - 1] + np.sqrt(0.75) * calm[:, i]
        return calm
    if kind == "unequal":
        return calm * np.exp(0.4 * generator.standard_normal((shape[0], 1)))
    assert kind == "normal", kind
    return calm


@dataclass(frozen=True)
class Setting:
    """What is simulated. `between_run_cv` shifts all trials of a run together; `interleaved` says whether the
    sides share their run; `past_runs` earlier runs of the base build, three trials each, are known.
    """

    noise: str = "normal"
    cv: float = 0.01
    trials: int = 5
    effects: tuple[float, ...] = (0.03, 0.05, 0.10)
    changed_share: float = 0.1
    between_run_cv: float = 0.0
    interleaved: bool = True
    past_runs: int = 0


@dataclass(frozen=True)
class Simulated:
    """Log values, shape (cases, trials a side), the true log change per case, and the past, shape
    (cases, runs, 3) or None.
    """

    base: Floats
    head: Floats
    truth: Floats
    past: Floats | None
    interleaved: bool


def simulate(setting: Setting, generator: np.random.Generator) -> Simulated:
    n = setting.trials
    values = setting.cv * noise(setting.noise, (CASES, 2 * n), generator)
    # A B B A: the order in which interleaved trials are run
    turn = np.tile([0, 1, 1, 0], n)[: 2 * n]
    shift = setting.between_run_cv * generator.standard_normal(2 + setting.past_runs)
    changed = generator.random(CASES) < setting.changed_share
    factor = 1.0 + generator.choice(setting.effects, CASES) * generator.choice([-1.0, 1.0], CASES)
    truth = np.where(changed, np.log(factor), 0.0)
    sides = [values[:, turn == side] for side in (0, 1)]
    if not setting.interleaved:
        sides = [values[:, :n] + shift[0], values[:, n:] + shift[1]]
    past = None
    if setting.past_runs:
        past = setting.cv * noise(setting.noise, (CASES, 3 * setting.past_runs), generator)
        past = past.reshape(CASES, setting.past_runs, 3) + shift[2:, None]
    return Simulated(sides[0], sides[1] + truth[:, None], truth, past, setting.interleaved)


Verdicts = NDArray[np.int64]
"""Per case +1 (regressed), -1 (improved), 0 (neither)."""


def examined(data: Simulated, policy: Policy = POLICY) -> tuple[Evidence, Decision]:
    """Our own judge on simulated log values, as one of the metrics of a comparison."""
    cases, n = data.base.shape
    x = np.stack([data.base, data.head], axis=2).reshape(-1)
    side = np.tile([0, 1], cases * n)
    observed = Observations(
        case=np.repeat(np.arange(cases), 2 * n),
        side=side,
        run=np.zeros_like(side) if data.interleaved else side,
        order=np.tile(np.arange(2 * n), cases),
        x=x,
    )
    evidence = examine_cases(observed, _past(data.past), cases, policy)
    thresholds = policy.for_case("simulated", "default", MEASURED_METRICS[0])
    judged = decide(
        evidence,
        policy,
        minimum_effect=np.full(cases, thresholds.minimum_effect),
        margin=np.full(cases, thresholds.unchanged_margin),
        families=FAMILIES,
    )
    return evidence, judged


def _past(past: Floats | None) -> Past:
    if past is None:
        return Past.empty()
    cases, runs, trials = past.shape
    return Past(
        series=np.repeat(np.arange(cases), runs * trials),
        run=np.tile(np.repeat(np.arange(runs), trials), cases),
        build=np.zeros(past.size, dtype=np.int64),
        x=past.reshape(-1),
    )


def ours(data: Simulated, _: np.random.Generator) -> Verdicts:
    judged = examined(data)[1]
    return judged.regressed.astype(np.int64) - judged.improved


def two_stages(data: Simulated, generator: np.random.Generator) -> Verdicts:
    """The first three trials a side choose the suspects, the fresh others decide about them alone."""
    first = Simulated(data.base[:, :3], data.head[:, :3], data.truth, data.past, data.interleaved)
    suspects = examined(first)[1].suspected
    verdicts = np.zeros(len(suspects), dtype=np.int64)
    if suspects.any():
        past = None if data.past is None else data.past[suspects]
        fresh = Simulated(
            data.base[suspects, 3:], data.head[suspects, 3:], data.truth[suspects], past, data.interleaved
        )
        verdicts[suspects] = ours(fresh, generator)
    return verdicts


def mean_ratio(threshold: float) -> Callable[[Simulated, np.random.Generator], Verdicts]:
    def rule(data: Simulated, _: np.random.Generator) -> Verdicts:
        ratio = np.exp(data.head).mean(axis=1) / np.exp(data.base).mean(axis=1)
        return (ratio > 1 + threshold).astype(np.int64) - (ratio < 1 - threshold)

    return rule


def welch(*, corrected: bool) -> Callable[[Simulated, np.random.Generator], Verdicts]:
    def rule(data: Simulated, _: np.random.Generator) -> Verdicts:
        with warnings.catch_warnings():
            # identical values in a real benchmark; the p-value it then gives is this rule's own
            warnings.simplefilter("ignore", RuntimeWarning)
            result = stats.ttest_ind(data.head, data.base, axis=1, equal_var=False)
        p_value = stats.false_discovery_control(result.pvalue) if corrected else result.pvalue
        return np.sign(result.statistic).astype(np.int64) * (p_value <= 0.05)

    return rule


def pooled_mann_whitney(data: Simulated, generator: np.random.Generator) -> Verdicts:
    """All iterations of all trials as if they were independent, corrected over cases."""

    def iterations(side: Floats) -> Floats:
        spread = ITERATION_CV * generator.standard_normal((*side.shape, ITERATIONS))
        return (side[:, :, None] + spread).reshape(len(side), -1)

    base, head = iterations(data.base), iterations(data.head)
    p_value = stats.mannwhitneyu(head, base, axis=1, method="asymptotic").pvalue
    direction = np.sign(np.median(head, axis=1) - np.median(base, axis=1)).astype(np.int64)
    return direction * (stats.false_discovery_control(p_value) <= 0.05)


@dataclass
class Score:
    """Averages over comparisons: share with any alarm, false discovery proportion, power by size of effect,
    and how often a changed case was called unchanged.
    """

    alarms: list[bool] = field(default_factory=list)
    false_share: list[float] = field(default_factory=list)
    found: dict[float, list[bool]] = field(default_factory=dict)

    def add(self, verdicts: Verdicts, data: Simulated, effects: Iterable[float]) -> None:
        right = (verdicts != 0) & (verdicts == np.sign(data.truth))
        self.alarms.append(bool((verdicts != 0).any()))
        self.false_share.append(float(np.sum((verdicts != 0) & ~right)) / max(1, int(np.sum(verdicts != 0))))
        for effect in effects:
            mine = np.isclose(np.abs(np.expm1(data.truth)), effect)
            self.found.setdefault(effect, []).extend(right[mine].tolist())

    @property
    def alarm_share(self) -> float:
        return float(np.mean(self.alarms))

    @property
    def fdr(self) -> float:
        return float(np.mean(self.false_share))

    @property
    def fdr_error(self) -> float:
        """Standard error of `fdr` over the comparisons simulated."""
        return float(np.std(self.false_share) / np.sqrt(len(self.false_share)))

    def power(self, effect: float) -> float:
        return float(np.mean(self.found[effect])) if self.found.get(effect) else float("nan")


def score(
    rule: Callable[[Simulated, np.random.Generator], Verdicts], setting: Setting, comparisons: int, seed: int
) -> Score:
    generator = np.random.default_rng(seed)
    total = Score()
    for _ in range(comparisons):
        data = simulate(setting, generator)
        total.add(rule(data, generator), data, setting.effects)
    return total
