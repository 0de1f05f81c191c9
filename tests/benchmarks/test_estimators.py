"""The value of a case by three estimators over its trials: the geometric mean that is shown, the median, and
Hodges and Lehmann's. How far each is from the truth, and how often its interval holds it.

    pytest tests/benchmarks/test_estimators.py -m benchmark -s

COMPILEWATCH_BENCH=full draws ten times as often.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from db.metrics.groups import Groups
from db.metrics.intervals import means_over_trials
from db.metrics.wild import FACTOR, alone
from tests.benchmarks.verdict_rules import FULL, Floats, noise

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(3600)]

PUBLIC = Path(__file__).parents[3] / "shared" / "data" / "regressions"
DRAWS = 20_000 if FULL else 2_000


def hodges_lehmann(x: Floats) -> Floats:
    """Median of the means of all pairs, each with itself too, of every row."""
    first, second = np.triu_indices(x.shape[1])
    middle: Floats = np.median((x[:, first] + x[:, second]) / 2.0, axis=1)
    return middle


def without_wild(factor: float) -> Callable[[Floats], Floats]:
    """The geometric mean without a trial that stands alone by this factor."""

    def mean(x: Floats) -> Floats:
        groups = Groups(np.repeat(np.arange(len(x)), x.shape[1]), len(x))
        wild = alone(groups, x.reshape(-1), factor).reshape(x.shape)
        middle: Floats = np.nanmean(np.where(wild, np.nan, x), axis=1)
        return middle

    return mean


ESTIMATORS: dict[str, Callable[[Floats], Floats]] = {
    "geometric mean": lambda x: x.mean(axis=1),
    "without a wild trial: 1.5": without_wild(1.5),
    "**2**": without_wild(FACTOR),
    "median": lambda x: np.median(x, axis=1),
    "Hodges-Lehmann": hodges_lehmann,
}


def _errors(title: str, draw: Callable[[int], tuple[Floats, Floats]], *, most: int = 10) -> None:
    """Of the change between two sides of unchanged code; `draw` gives their log values by trials a side."""
    print(f"\n{title}: RMS (95th percentile) of the change\n| n | " + " | ".join(ESTIMATORS) + " |")
    print("| --- |" + " --- |" * len(ESTIMATORS))
    for n in (n for n in (3, 4, 5, 10) if n <= most):
        base, head = draw(n)
        cells = []
        for estimate in ESTIMATORS.values():
            error = np.abs(estimate(head) - estimate(base))
            cells.append(f"{np.sqrt(np.mean(error**2)):.3f} ({np.quantile(error, 0.95):.3f})")
        print(f"| {n} | " + " | ".join(cells) + " |", flush=True)


def test_errors_on_public_fresh_processes() -> None:
    """Two disjoint sets of processes of each benchmark: ten in all, so at most 5 a side."""
    if not PUBLIC.is_dir():
        pytest.skip(f"The public series are not in {PUBLIC}.")
    content = json.loads((PUBLIC / "ab_jmh.json").read_text())
    logs = [np.log([np.median(run) for run in each["runs"]]) for each in content["benchmarks"]]
    generator = np.random.default_rng(5)

    def draw(n: int) -> tuple[Floats, Floats]:
        chosen = [generator.permutation(x)[: 2 * n] for x in logs for _ in range(DRAWS // len(logs))]
        both = np.stack(chosen)
        return both[:, :n], both[:, n:]

    _errors("140 JMH benchmarks, fresh processes", draw, most=5)


@pytest.mark.parametrize("kind", ["normal", "heavy tails", "bimodal", "outliers", "one in 30 wild"])
def test_errors_by_simulation(kind: str) -> None:
    """At a CV of 2 %; a wild trial takes three times as long."""
    generator = np.random.default_rng(6)

    def side(n: int) -> Floats:
        if kind != "one in 30 wild":
            return 0.02 * noise(kind, (DRAWS, n), generator)
        calm: Floats = 0.02 * generator.standard_normal((DRAWS, n))
        return calm + np.log(3.0) * (generator.random((DRAWS, n)) < 1 / 30)

    _errors(kind, lambda n: (side(n), side(n)))


def test_coverage_of_the_interval() -> None:
    """How often the interval of the geometric mean holds the true one, at a CV of 2 %."""
    generator = np.random.default_rng(7)
    print("\n| noise | n = 3 | 5 | 10 | 20 | 50 |\n| --- | --- | --- | --- | --- | --- |")
    for kind in ("normal", "one in ten late", "bimodal"):
        cells = []
        for n in (3, 5, 10, 20, 50):
            x = 0.02 * noise("bimodal" if kind == "bimodal" else "normal", (DRAWS, n), generator)
            truth = 0.02 * 0.6 / 1.05 if kind == "bimodal" else 0.0
            if kind == "one in ten late":
                x, truth = x + 0.1 * (generator.random(x.shape) < 0.1), 0.01
            groups = Groups(np.repeat(np.arange(DRAWS), n), DRAWS)
            found = means_over_trials(groups, np.exp(x).reshape(-1))
            cells.append(f"{np.mean((found.low <= np.exp(truth)) & (found.high >= np.exp(truth))):.3f}")
        print(f"| {kind} | " + " | ".join(cells) + " |", flush=True)
