"""Simulated histories, labelled public ones, and the rules of other dashboards that find changes in them.

A rule takes log values and returns the starts of new levels. Rules of dashboards that look at neighbours are
written as their sources state them; `ruptures` is called as its documentation shows.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import ruptures
from numpy.typing import NDArray
from scipy import stats

from compilewatch.db.judge.change_points import boundaries, noise_scale
from compilewatch.db.judge.history.series import nightly_boundaries
from compilewatch.db.judge.policy import HistoryPolicy

Floats = NDArray[np.float64]
Rule = Callable[[Floats], Sequence[int]]
POLICY = HistoryPolicy()
TOLERANCE = 5
KINDS = ("normal", "heavy tails", "bimodal", "autocorrelated", "drifting", "outliers", "mixed")
CVS = (0.01, 0.02, 0.03)


@dataclass(frozen=True)
class Series:
    """Log values with the true starts of new levels. `step` is the relative size, 0 for unchanged."""

    y: Floats
    truth: tuple[int, ...]
    step: float
    kind: str
    cv: float


def unit_noise(kind: str, n: int, generator: np.random.Generator) -> Floats:
    calm = generator.standard_normal(n)
    if kind == "heavy tails":
        return generator.standard_t(3, n) / math.sqrt(3.0)
    if kind == "bimodal":
        return (2.0 * sticky_states(n, 0.3, 0.7, generator) - 0.6 + 0.5 * calm) / 1.05
    if kind == "autocorrelated":
        for i in range(1, n):
            calm[i] = 0.5 * calm[i - 1] + math.sqrt(0.75) * calm[i]
        return calm
    if kind == "drifting":
        return calm + np.linspace(0.0, 0.6, n) * generator.choice([-1.0, 1.0])
    if kind == "outliers":
        return calm * np.where(generator.random(n) < 0.03, 6.0, 1.0)
    if kind == "mixed":
        heavy = 0.7 * generator.standard_t(4, n) / math.sqrt(2.0)
        return heavy + 0.6 * (generator.random(n) < 0.2)
    assert kind == "normal", kind
    return calm


def sticky_states(n: int, share: float, redraw: float, generator: np.random.Generator) -> Floats:
    """0/1 states with this share of ones, drawn anew with probability `redraw` at each point."""
    fresh = generator.random(n) < redraw
    fresh[0] = True
    drawn = (generator.random(n) < share).astype(np.float64)
    return drawn[np.maximum.accumulate(np.where(fresh, np.arange(n), 0))]


def simulate(
    kind: str, cv: float, step: float, starts: Sequence[int], n: int, generator: np.random.Generator
) -> Series:
    y = cv * unit_noise(kind, n, generator)
    truth = tuple(starts) if step else ()
    for start in truth:
        y[start:] += math.log1p(step) * generator.choice([-1.0, 1.0])
    return Series(y, truth, step, kind, cv)


def public_series(path: Path) -> list[Series]:
    """A file of labelled series whose labels are the true changes."""
    return [
        Series(
            np.log(np.asarray(case["values"])),
            tuple(case["labels"]["truth"]),
            case["step"],
            case["family"],
            case["noise_cv"],
        )
        for case in json.loads(path.read_text())
    ]


def ours(y: Floats) -> list[int]:
    return [found.start for found in boundaries(y, POLICY)]


def ours_nightly(y: Floats) -> list[int]:
    """As each night's newest point is judged."""
    night = nightly_boundaries(y, POLICY)
    return [*(each.start for each in night.strong), *sorted(night.lasting)]


def against_previous(threshold: float) -> Rule:
    """TorchBench (7 % against the previous nightly), CodeSpeed (3 % and 5 %) and others."""

    def rule(y: Floats) -> list[int]:
        return [int(i) + 1 for i in np.flatnonzero(np.abs(np.expm1(np.diff(y))) > threshold)]

    return rule


def quartile_fence(y: Floats) -> list[int]:
    """rustc-perf: at least Q3 + 3 IQR of the last 30 relative changes, 0.2 % without enough of them."""
    change = np.abs(np.expm1(np.diff(y)))
    found = []
    for i in range(30, len(change)):
        q1, q3 = np.quantile(change[i - 30 : i], [0.25, 0.75])
        if change[i] >= q3 + 3.0 * (q3 - q1):
            found.append(i + 1)
    return found


def t_boundary(y: Floats) -> list[int]:
    """Bencher's default: the new value beyond the 0.99 t prediction boundary of the last 64 points."""
    found = []
    for i in range(10, len(y)):
        window = y[max(0, i - 64) : i]
        reach = stats.t.ppf(0.99, len(window) - 1) * window.std(ddof=1) * math.sqrt(1 + 1 / len(window))
        if abs(y[i] - window.mean()) > reach:
            found.append(i)
    return found


def z_score(y: Floats) -> list[int]:
    """Conbench: |z| > 5 on the last 100 points."""
    found = []
    for i in range(10, len(y)):
        window = y[max(0, i - 100) : i]
        if abs(y[i] - window.mean()) > 5.0 * window.std(ddof=1):
            found.append(i)
    return found


def perfherder(y: Floats) -> list[int]:
    """Perfherder: weighted t over 12 points before and after, at least 7, a local maximum, at least 2 %."""
    span = 12
    weights = (span - np.arange(span)) / span
    scores = np.zeros(len(y))
    for i in range(span, len(y) - span + 1):
        before, after = y[i - span : i][::-1], y[i : i + span]
        spread = (_weighted_variance(before, weights) + _weighted_variance(after, weights)) / span
        gap = abs(np.average(after, weights=weights) - np.average(before, weights=weights))
        scores[i] = gap / math.sqrt(spread) if spread > 0 else 0.0
    return [
        i
        for i in range(span, len(y) - span + 1)
        if scores[i] >= 7.0
        and scores[i] == scores[max(0, i - span) : i + span].max()
        and abs(np.expm1(np.median(y[i : i + span]) - np.median(y[i - span : i]))) >= 0.02
    ]


def _weighted_variance(values: Floats, weights: Floats) -> float:
    mean = np.average(values, weights=weights)
    return float(np.sum(weights * np.square(values - mean)) / weights.sum() * len(values) / (len(values) - 1))


def pelt(y: Floats) -> list[int]:
    """ruptures PELT with squared loss, penalty 5 log n, on the series in units of its noise."""
    scale = noise_scale(y)
    if scale == 0.0 or len(y) < 4:
        return []
    found = ruptures.KernelCPD("linear", min_size=2).fit((y / scale).reshape(-1, 1))
    return [int(i) for i in found.predict(pen=5.0 * math.log(len(y)))[:-1]]


def kernel_alone(y: Floats) -> list[int]:
    """ruptures KernelCPD, rbf with its own bandwidth, penalty 8, without a test on top."""
    if len(y) < 10:
        return []
    found = ruptures.KernelCPD("rbf", min_size=5).fit(y.reshape(-1, 1))
    return [int(i) for i in found.predict(pen=8.0)[:-1]]


RULES: dict[str, Rule] = {
    "previous value > 5 %": against_previous(0.05),
    "previous value > 7 %": against_previous(0.07),
    "Q3 + 3 IQR of the last 30 changes (rustc-perf)": quartile_fence,
    "t boundary .99 (Bencher)": t_boundary,
    "z > 5 of 100 (Conbench)": z_score,
    "t >= 7 windows (Perfherder)": perfherder,
    "ruptures PELT, 5 log n": pelt,
    "ruptures kernel (rbf), penalty 8": kernel_alone,
    "ours": ours,
}


def matches(found: Sequence[int], truth: Sequence[int]) -> int:
    """True changes that have a found one within the tolerance, each used once."""
    left, hits = list(truth), 0
    for start in found:
        near = [change for change in left if abs(change - start) <= TOLERANCE]
        if near:
            left.remove(min(near, key=lambda change: abs(change - start)))
            hits += 1
    return hits


def announce_nightly(rule: Rule, y: Floats, first: int = 10) -> list[tuple[int, int]]:
    """(start, night of announcement) when every point is judged once, on its arrival, by the last window.

    Nothing within the quiet distance of an announced change is announced again.
    """
    announced: list[tuple[int, int]] = []
    for night in range(first, len(y)):
        offset = max(0, night + 1 - POLICY.window)
        for start in rule(y[offset : night + 1]):
            if all(abs(start + offset - known) > POLICY.quiet_points for known, _ in announced):
                announced.append((start + offset, night))
    return announced
