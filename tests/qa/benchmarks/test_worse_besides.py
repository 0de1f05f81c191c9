"""How often the line "Worse besides" is said of two equal sides: p95, p99 and time to first result.

    pytest tests/qa/benchmarks/test_worse_besides.py -m benchmark -s

COMPILEWATCH_BENCH=full runs ten times as many comparisons.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pytest

from compilewatch.db.judge.decide import decide
from compilewatch.db.judge.policy import Policy
from compilewatch.db.judge.significance import interval
from compilewatch.db.judge.statistics.contrast import Observations
from compilewatch.db.judge.statistics.evidence import examine_cases
from compilewatch.db.judge.statistics.noise import Past
from compilewatch.runner.output.comparison_text import BESIDE
from tests.qa.benchmarks.test_until_decided import HISTORY, NOISES
from tests.qa.benchmarks.verdict_rules import FULL, Floats

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(3600)]

POLICY = Policy()
COMPARISONS = 2_000 if FULL else 200


@dataclass(frozen=True)
class Setting:
    """Equal sides of `cases` cases with `trials` a side, which take turns in one run, or are runs `between`
    apart (CV), of which nothing else is known. `noise` is that between processes, of the CV `cv`; the first
    metric of the first case changes by `effect`.
    """

    cases: int = 4
    trials: int = 5
    cv: float = 0.15
    noise: str = "normal"
    between: float | None = None
    effect: float = 0.0


def _skewed(shape: tuple[int, ...], generator: np.random.Generator) -> Floats:
    return generator.standard_exponential(shape)


def _of_the_cpu(shape: tuple[int, ...], generator: np.random.Generator) -> Floats:
    """Each case with what the trials of one recorded case differed by within a run, in p95 and in time to
    first result: of 50 steps nothing is said of p99. Shape (metrics, cases, 2, trials); smoothed.
    """
    spreads = _recorded()
    x = np.full(shape, np.nan)
    for case, number in enumerate(generator.integers(len(spreads), size=shape[1])):
        of_trial = generator.integers(len(spreads[number]), size=shape[2:])
        for metric, place in ((0, 0), (2, 1)):
            known = spreads[number][:, place]
            x[metric, case] = known[of_trial] + 0.5 * known.std() * generator.standard_normal(shape[2:])
    return x / np.sqrt(1.25)


def _recorded() -> list[Floats]:
    """By case, shape (trials, 2)."""
    by_run: dict[str, dict[str, list[tuple[float, float]]]] = defaultdict(lambda: defaultdict(list))
    for line in HISTORY.read_text(encoding="utf-8").splitlines():
        trial = json.loads(line)
        if trial["status"] == "ok" and not trial["workload"]["name"].startswith("canary"):
            name = f"{trial['workload']['name']} / {trial['strategy']['name']}"
            values = np.quantile(trial["samples_ns"], 0.95), trial["cold_start"]["total_ns"]
            by_run[name][trial["run_id"]].append((float(np.log(values[0])), float(np.log(values[1]))))
    return [
        np.concatenate(
            [
                (np.array(each) - np.mean(each, axis=0)) * np.sqrt(len(each) / (len(each) - 1))
                for each in runs.values()
                if len(each) > 2
            ]
        )
        for runs in by_run.values()
        if any(len(each) > 2 for each in runs.values())
    ]


_UNIT: dict[str, Callable[[tuple[int, ...], np.random.Generator], Floats]] = {
    **{name: noise for name, noise in NOISES.items() if not name.startswith("recorded")},
    "skewed (exponential)": _skewed,
    "recorded, 2 vCPUs": _of_the_cpu,
}


def said_of(setting: Setting, generator: np.random.Generator) -> list[bool]:
    """Of each case whether the line names it."""
    shape = (len(BESIDE), setting.cases, 2, setting.trials)
    x = _UNIT[setting.noise](shape, generator)
    x = x if setting.noise.startswith("recorded") else setting.cv * x
    if setting.between is not None:
        spread = setting.between / np.sqrt(2.0)
        x = x + spread * generator.standard_normal((len(BESIDE), 1, 2, 1))
        x = x + spread * generator.standard_normal((len(BESIDE), setting.cases, 2, 1))
    x[0, 0, 1] += np.log1p(setting.effect)
    named = np.zeros(setting.cases, dtype=np.bool_)
    for metric, values in zip(BESIDE, x, strict=True):
        case, side, trial = (each.reshape(-1) for each in np.indices(values.shape))
        known = np.isfinite(values.reshape(-1))
        run = side if setting.between is not None else np.zeros_like(side)
        observed = Observations(case, side, run, 2 * trial + side, values.reshape(-1)).where(known)
        limits = POLICY.for_case("simulated", "default", metric)
        evidence = examine_cases(observed, Past.empty(), setting.cases, POLICY)
        judged = decide(
            evidence,
            POLICY,
            minimum_effect=np.full(setting.cases, limits.minimum_effect),
            margin=np.full(setting.cases, limits.unchanged_margin),
            families=len(BESIDE),
        )
        near, _ = interval(evidence.test, POLICY.confidence)
        named |= judged.regressed & (near >= limits.minimum_effect)
    return [bool(each) for each in named]


def rates(setting: Setting, seed: int = 1) -> tuple[float, float]:
    """The share of comparisons with the line, and the share of cases that it names."""
    generator = np.random.default_rng(seed)
    said = np.array([said_of(setting, generator) for _ in range(COMPARISONS)])
    return float(said.any(axis=1).mean()), float(said.mean())


ROWS = [
    (noise, cv) for noise in _UNIT for cv in ([None] if noise.startswith("recorded") else [0.03, 0.15, 0.30])
]


@pytest.mark.parametrize(("noise", "cv"), ROWS)
def test_equal_sides(noise: str, cv: float | None) -> None:
    """A row of the table of docs/measured/verdicts.md."""
    cells = []
    for between in (None, 0.03):
        for trials in (3, 5, 10):
            here = Setting(cv=cv or 0.0, noise=noise, trials=trials, between=between)
            several, one = rates(here), rates(replace(here, cases=1))
            cells.append(f"{one[0]:.3f}/{several[0]:.3f}")
            for share, of_case in (several, one):
                assert share <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / COMPARISONS)
                assert of_case <= share
    print(f"\n| {noise} | {f'{cv:.0%}' if cv else ''} | {' | '.join(cells)} |")


def test_what_is_slower_is_said() -> None:
    """Of one case of four the p95 takes twice as long."""
    here = Setting(effect=1.0)
    cells = []
    for trials in (3, 5, 10):
        generator = np.random.default_rng(2)
        gates = [said_of(replace(here, trials=trials), generator)[0] for _ in range(COMPARISONS)]
        cells.append(f"{np.mean(gates):.2f}")
    print(f"\ntwice at CV {here.cv:.0%}, by turns, n = 3/5/10: {'/'.join(cells)}")
    assert float(cells[1]) >= 0.9
