"""Upgrade verdicts on simulated comparisons and on public fresh-process data: tables and goals.

    pytest tests/qa/benchmarks/test_upgrade_verdicts.py -m benchmark -s

COMPILEWATCH_BENCH=full runs ten times as many comparisons.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.qa.benchmarks.tables import figure, header, line
from tests.qa.benchmarks.verdict_rules import (
    FULL,
    Setting,
    Simulated,
    examined,
    mean_ratio,
    ours,
    pooled_mann_whitney,
    score,
    simulate,
    two_stages,
    welch,
)

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(3600)]

REPEATS = 400 if FULL else 40
AA_REPEATS = 1000 if FULL else 100
PUBLIC = Path(__file__).resolve().parents[4] / "shared" / "data" / "regressions"
needs_public_data = pytest.mark.skipif(not PUBLIC.is_dir(), reason="the public labelled cases are not here")

RULES = {
    "mean ratio > 5 %": mean_ratio(0.05),
    "mean ratio > 2 %": mean_ratio(0.02),
    "Mann-Whitney, pooled iterations, corrected": pooled_mann_whitney,
    "Welch t, p < .05, uncorrected": welch(corrected=False),
    "Welch t, corrected": welch(corrected=True),
    "ours": ours,
}
NOISES = ("normal", "heavy tails", "bimodal", "some bimodal", "autocorrelated", "unequal", "outliers")


def test_table_of_rules():
    header(["rule", "A/A: any alarm", *(f"n={n}: power 3 / 5 % (FDR)" for n in (3, 5, 10))])
    for name, rule in RULES.items():
        alone = score(rule, Setting(changed_share=0.0, trials=5), AA_REPEATS // 2, seed=1)
        cells = [name, f"{alone.alarm_share:.2f}"]
        for n in (3, 5, 10):
            found = score(rule, Setting(trials=n), max(REPEATS // 4, 10), seed=n)
            cells.append(f"{found.power(0.03):.2f} / {found.power(0.05):.2f} ({found.fdr:.2f})")
        line(cells)


@pytest.mark.parametrize("noise", NOISES)
def test_false_discoveries_and_alarms_on_identical_builds(noise: str):
    header(["noise", "n", "A/A: any alarm", "FDR", "power 3 / 5 / 10 %"])
    for n in (3, 5, 10):
        setting = Setting(noise=noise, trials=n)
        alone = score(ours, replace(setting, changed_share=0.0), AA_REPEATS, seed=10 + n)
        found = score(ours, setting, REPEATS, seed=20 + n)
        power = " / ".join(f"{found.power(effect):.2f}" for effect in setting.effects)
        line([noise, n, figure(alone.alarm_share), figure(found.fdr), power])
        assert found.fdr <= 0.05 + 2 * found.fdr_error
        assert alone.alarm_share <= 0.05


@pytest.mark.parametrize(
    ("cv", "n", "effect", "wanted"),
    [(0.01, 5, 0.03, 0.90), (0.01, 4, 0.05, 0.95), (0.02, 5, 0.05, 0.80), (0.02, 10, 0.05, 0.95)],
)
def test_power(cv: float, n: int, effect: float, wanted: float):
    for past_runs in (0, 10):
        found = score(ours, Setting(cv=cv, trials=n, effects=(effect,), past_runs=past_runs), REPEATS, seed=3)
        print(
            f"CV {cv:.0%}, n={n}, {effect:.0%} change, {past_runs} past runs: "
            f"power {found.power(effect):.3f} (wanted {wanted}), FDR {found.fdr:.3f}"
        )
        assert found.power(effect) >= wanted
        assert found.fdr <= 0.05


def test_unchanged_is_not_said_of_a_changed_case():
    header(["CV", "n", "true 5 % change called unchanged", "true 0 called unchanged"])
    generator = np.random.default_rng(6)
    for cv in (0.01, 0.02, 0.03):
        for n in (3, 5, 10):
            wrong, right = [], []
            for _ in range(REPEATS):
                data = simulate(Setting(cv=cv, trials=n, effects=(0.05,)), generator)
                same = examined(data)[1].same
                wrong += same[data.truth != 0].tolist()
                right += same[data.truth == 0].tolist()
            line([f"{cv:.0%}", n, f"{np.mean(wrong):.4f}", f"{np.mean(right):.3f}"])
            assert np.mean(wrong) <= 0.002


def test_sides_from_separate_runs():
    header(["between runs", "design", "past runs", "FDR", "A/A: any alarm", "power 5 %"])
    for between in (0.005, 0.01):
        for interleaved, past_runs in ((False, 0), (False, 20), (True, 0)):
            setting = Setting(between_run_cv=between, interleaved=interleaved, past_runs=past_runs)
            found = score(ours, setting, REPEATS, seed=7)
            alone = score(ours, replace(setting, changed_share=0.0), AA_REPEATS, seed=8)
            design = "interleaved" if interleaved else "separate runs"
            cells = [f"{between:.1%}", design, past_runs, figure(found.fdr), figure(alone.alarm_share)]
            line([*cells, f"{found.power(0.05):.2f}"])
            if between == 0.005 or interleaved or past_runs:
                assert found.fdr <= 0.05


def test_two_stages():
    header(["noise", "CV", "FDR", "A/A: any alarm", "power 3 / 5 %"])
    for noise in ("normal", "some bimodal", "heavy tails"):
        for cv in (0.01, 0.02):
            setting = Setting(noise=noise, cv=cv, trials=10)
            found = score(two_stages, setting, REPEATS, seed=9)
            alone = score(two_stages, replace(setting, changed_share=0.0), AA_REPEATS, seed=10)
            power = f"{found.power(0.03):.2f} / {found.power(0.05):.2f}"
            line([noise, f"{cv:.0%}", figure(found.fdr), figure(alone.alarm_share), power])
            assert found.fdr <= 0.05


def medians(trials: list[list[float]]) -> list[float]:
    return [float(np.log(np.median(trial))) for trial in trials]


def summarize(name: str, groups: dict[str, tuple[Simulated, np.ndarray]]) -> None:
    """Print flagged unchanged cases, FDR and power per effect for each rule over all groups."""
    generator = np.random.default_rng(0)
    header([name, "unchanged cases flagged", "FDR", "power by change"])
    for rule_name in ("mean ratio > 5 %", "Welch t, corrected", "ours"):
        verdicts = np.concatenate([RULES[rule_name](data, generator) for data, _ in groups.values()])
        truth = np.concatenate([data.truth for data, _ in groups.values()])
        right = (verdicts != 0) & (verdicts == np.sign(truth))
        flagged = verdicts != 0
        power = {
            f"{change:.0%}": round(float(right[np.isclose(np.expm1(truth), change)].mean()), 2)
            for change in sorted(set(np.round(np.expm1(truth[truth != 0]), 6)))
        }
        share = flagged[truth == 0].mean()
        fdr = np.sum(flagged & ~right) / max(1, flagged.sum())
        line([rule_name, f"{share:.4f}", figure(float(fdr)), power])
        if rule_name == "ours":
            assert fdr <= 0.05


@needs_public_data
def test_public_fresh_process_data():
    """Forks of 140 JMH benchmarks; the head side of some is slowed down. Past forks are the history."""
    content = json.loads((PUBLIC / "ab_jmh.json").read_text())
    by_group: dict[str, list[dict[str, Any]]] = {}
    for case in content["cases"]:
        by_group.setdefault(case["group"], []).append(case)
    groups = {}
    for name, cases in by_group.items():
        values = [np.array(medians(content["benchmarks"][case["bench"]]["runs"])) for case in cases]
        values = [v - v.mean() for v in values]
        pick = [
            [np.array([v[i] for i in case[key]]) for key in ("A", "B", "history")]
            for v, case in zip(values, cases, strict=True)
        ]
        factor = np.log([case["factor"] for case in cases])
        shortest = min(len(p[2]) for p in pick)
        groups[name] = (
            Simulated(
                base=np.array([p[0] for p in pick]),
                head=np.array([p[1] for p in pick]) + factor[:, None],
                truth=factor,
                past=np.array([p[2][:shortest] for p in pick])[:, None, :],
                interleaved=True,
            ),
            factor,
        )
    summarize("JMH forks, slowdowns injected", groups)


@needs_public_data
def test_public_simulated_data():
    content = json.loads((PUBLIC / "ab_synth.json").read_text())
    groups = {}
    for cv in sorted({case["run_cv"] for case in content["cases"]}):
        cases = [case for case in content["cases"] if case["run_cv"] == cv]
        truth = np.log([case["true_ratio"] for case in cases])
        data = Simulated(
            np.array([medians(case["A"]) for case in cases]),
            np.array([medians(case["B"]) for case in cases]),
            truth,
            None,
            interleaved=True,
        )
        groups[str(cv)] = (data, truth)
    summarize("public simulated comparisons", groups)
