"""Change points in histories: whole series and night by night, beside the rules of other dashboards.

    pytest tests/qa/benchmarks/test_history_detection.py -m benchmark -s

COMPILEWATCH_BENCH=full runs many more series.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from compilewatch.db.judge.modes import is_flip
from tests.qa.benchmarks.history_rules import (
    CVS,
    KINDS,
    POLICY,
    RULES,
    Rule,
    Series,
    announce_nightly,
    matches,
    ours_nightly,
    public_series,
    simulate,
    sticky_states,
)
from tests.qa.benchmarks.otava_rule import PYTHON, Otava
from tests.qa.benchmarks.tables import figure, header, line
from tests.qa.benchmarks.verdict_rules import FULL

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(3600)]

PUBLIC = Path(__file__).resolve().parents[4] / "shared" / "data" / "regressions"
needs_public_data = pytest.mark.skipif(not PUBLIC.is_dir(), reason="the public labelled series are not here")
OTAVA_OPTIONS = {
    "Otava default": {},
    "Otava, window 100, 1e-5, 2 %": {"window_len": 100, "max_pvalue": 1e-5, "min_magnitude": 0.02},
}
NIGHTLY = ("previous value > 5 %", "t >= 7 windows (Perfherder)", "ruptures kernel (rbf), penalty 8", "ours")
FAST_NIGHTLY = {"previous value > 5 %", "ours"}
FOUND_WITHIN = 60


@pytest.fixture(scope="module")
def rules() -> Iterator[dict[str, Rule]]:
    """Every rule by name, Otava's among them where its interpreter is named."""
    if PYTHON is None:
        print("\nwithout Otava: COMPILEWATCH_OTAVA_PYTHON names no interpreter that has it")
        yield RULES
        return
    others = {name: Otava(**options) for name, options in OTAVA_OPTIONS.items()}
    yield RULES | others
    for other in others.values():
        other.close()


def whole_series(rule: Rule, series: Sequence[Series]) -> dict[str, float]:
    """Precision, recall, F1, false alarms per 1,000 points of unchanged series, recall by step."""
    hits = found = false_alarms = quiet_points = 0
    by_step: dict[float, list[int]] = {}
    for each in series:
        starts = rule(each.y)
        right = matches(starts, each.truth)
        hits, found = hits + right, found + len(starts)
        if each.truth:
            total = by_step.setdefault(each.step, [0, 0])
            total[0] += right
            total[1] += len(each.truth)
        else:
            false_alarms += len(starts)
            quiet_points += len(each.y)
    there = sum(total for _, total in by_step.values())
    precision, recall = hits / max(1, found), hits / there
    result = {
        "precision": precision,
        "recall": recall,
        "F1": 2 * precision * recall / max(1e-9, precision + recall),
        "FA/1000": 1000.0 * false_alarms / max(1, quiet_points),
    }
    return result | {f"{step:.0%}": a / b for step, (a, b) in sorted(by_step.items())}


def show_whole_series(
    title: str, series: Sequence[Series], rules: dict[str, Rule]
) -> dict[str, dict[str, float]]:
    results = {name: whole_series(rule, series) for name, rule in rules.items()}
    header([title, *results["ours"]])
    for name, result in results.items():
        line([name, *(f"{value:.2f}" for value in result.values())])
    return results


@needs_public_data
def test_public_simulated_series(rules: dict[str, Rule]):
    series = public_series(PUBLIC / "ts_synth.json")
    result = show_whole_series("public simulated series", series, rules)["ours"]
    assert result["precision"] >= 0.95
    assert result["5%"] >= 0.92


@needs_public_data
def test_public_measured_series_with_injected_steps(rules: dict[str, Rule]):
    series = public_series(PUBLIC / "ts_jmh_injected.json")
    result = show_whole_series("JMH forks, steps injected", series, rules)
    assert result["ours"]["precision"] >= 0.95


@needs_public_data
def test_alarms_on_unlabelled_ci_series(rules: dict[str, Rule]):
    """144 series of one project's CPU runners on shared machines: how often would someone be called?"""
    cases = json.loads((PUBLIC / "ts_tensordict_cpu.json").read_text())
    series = [np.log(np.asarray(case["values"])) for case in cases]
    header(["rule", "alarms", "series with any", f"per 1,000 of {sum(map(len, series))} points"])
    for name, rule in rules.items():
        alarms = [len(rule(y)) for y in series]
        line(
            [
                name,
                sum(alarms),
                sum(a > 0 for a in alarms),
                f"{1000 * sum(alarms) / sum(map(len, series)):.2f}",
            ]
        )


def test_simulated_series(rules: dict[str, Rule]):
    """Two changes a series, on seeds that no constant was chosen on."""
    generator = np.random.default_rng(20261120)
    series = []
    for kind, cv, step in itertools.product(KINDS, CVS, (0.0, 0.02, 0.03, 0.05, 0.10)):
        for _ in range(20 if FULL else 3):
            first = int(generator.integers(30, 120))
            second = int(generator.integers(first + 30, 235))
            series.append(simulate(kind, cv, step, (first, second), 250, generator))
    show_whole_series("simulated series", series, rules)


@dataclass
class Nightly:
    """Alarms on unchanged series by kind of noise, the points looked at, and delays by (step, CV): nights
    from the change to its announcement, None where it was not found.
    """

    alarms: dict[str, int] = field(default_factory=lambda: dict.fromkeys(KINDS, 0))
    points: int = 0
    delays: dict[tuple[float, float], list[int | None]] = field(default_factory=dict)

    @property
    def rate(self) -> str:
        """Alarms per 1,000 points with the exact 95 % interval of a Poisson count."""
        count = sum(self.alarms.values())
        low = stats.chi2.ppf(0.025, 2 * count) / 2 if count else 0.0
        high = stats.chi2.ppf(0.975, 2 * count + 2) / 2
        per_mille = (f"{1000 * value / self.points:.3f}" for value in (count, low, high))
        return "{} ({}-{})".format(*per_mille)

    def found(self, step: float, cvs: Sequence[float]) -> str:
        mine = [delay for cv in cvs for delay in self.delays[step, cv]]
        hits = [delay for delay in mine if delay is not None]
        return f"{len(hits) / len(mine):.3f} ({np.median(hits) if hits else float('nan'):.0f})"


def judge_nightly(rule: Rule, repeats: int, seed: int) -> Nightly:
    generator = np.random.default_rng(seed)
    result = Nightly()
    for kind, cv in itertools.product(KINDS, CVS):
        for _ in range(repeats):
            quiet = simulate(kind, cv, 0.0, (), 200, generator)
            result.alarms[kind] += len(announce_nightly(rule, quiet.y))
            result.points += len(quiet.y)
            for step in (0.03, 0.05, 0.10):
                start = int(generator.integers(40, 75))
                moved = simulate(kind, cv, step, (start,), start + FOUND_WITHIN + 1, generator)
                hits = [
                    night - start for s, night in announce_nightly(rule, moved.y) if matches([s], [start])
                ]
                result.delays.setdefault((step, cv), []).append(hits[0] if hits else None)
    return result


def test_night_by_night(rules: dict[str, Rule]):
    header(
        [
            "rule",
            "false alarms per 1,000 (95 % interval)",
            "found within 60 nights (median delay): 3 / 5 / 10 %",
            "3 % at CV 1 / 2 / 3 %",
            "5 % at CV <= 2 %",
        ]
    )
    for name in (*NIGHTLY, *(other for other in rules if other not in RULES)):
        repeats = 4 if not FULL else 60 if name in FAST_NIGHTLY else 15
        if name not in RULES:
            repeats = min(repeats, 5)
        rule = ours_nightly if name == "ours" else rules[name]
        result = judge_nightly(rule, repeats, seed=20261121)
        line(
            [
                name,
                result.rate,
                " / ".join(result.found(step, CVS) for step in (0.03, 0.05, 0.10)),
                " / ".join(result.found(0.03, (cv,)) for cv in CVS),
                result.found(0.05, (0.01, 0.02)),
            ]
        )
        if name == "ours":
            print(f"alarms by noise: {result.alarms} over {result.points} points")
            early = [delay for cv in (0.01, 0.02) for delay in result.delays[0.05, cv]]
            assert sum(delay is not None for delay in early) >= 0.98 * len(early)
            assert sum(result.alarms.values()) <= stats.poisson.ppf(0.95, 0.15e-3 * result.points)


@needs_public_data
@pytest.mark.parametrize("name", ["ts_synth.json", "ts_jmh_injected.json"])
def test_public_series_night_by_night(name: str):
    """As the judge is used: every night's newest point judged once, what was announced never taken back."""
    header([f"{name}, night by night", "alarms on unchanged series", "points", "precision", "recall by step"])
    alarms = points = found = hits = 0
    by_step: dict[float, list[int]] = {}
    for series in public_series(PUBLIC / name):
        starts = [start for start, _ in announce_nightly(ours_nightly, series.y)]
        right = matches(starts, series.truth)
        found, hits = found + len(starts), hits + right
        if series.truth:
            total = by_step.setdefault(series.step, [0, 0])
            total[0] += right
            total[1] += len(series.truth)
        else:
            alarms, points = alarms + len(starts), points + len(series.y)
    recall = {f"{step:.0%}": round(a / b, 3) for step, (a, b) in sorted(by_step.items())}
    line([name, alarms, points, figure(hits / found), recall])
    assert alarms <= 0.1e-3 * points
    if name == "ts_synth.json":
        assert recall["5%"] >= 0.93


def test_two_mode_machines():
    """States two deviations apart that last for nights: the hardest noise for any rule. A step between modes
    that the series has visited by turns is announced as such, not as a regression or improvement.
    """
    header(["states last", "steps found per 1,000 points", "called regressed or improved", "points"])
    for redraw in (0.7, 0.3, 0.1, 0.05):
        generator = np.random.default_rng(5)
        steps = alarms = points = 0
        for _ in range(200 if FULL else 20):
            y = 0.02 * (
                2.0 * sticky_states(300, 0.3, redraw, generator) + 0.5 * generator.standard_normal(300)
            )
            for start, night in announce_nightly(ours_nightly, y):
                steps += 1
                offset = max(0, night + 1 - POLICY.window)
                alarms += not is_flip(y[offset : night + 1], start - offset, POLICY)
            points += len(y)
        line(
            [
                f"{1 / redraw:.0f} nights",
                f"{1000 * steps / points:.2f}",
                f"{1000 * alarms / points:.2f}",
                points,
            ]
        )
