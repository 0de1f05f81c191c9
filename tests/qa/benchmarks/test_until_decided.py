"""Trials that are added until they decide: how often that is wrong, and how many it takes.

    pytest tests/qa/benchmarks/test_until_decided.py -m benchmark -s

COMPILEWATCH_BENCH=full runs ten times as many comparisons.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

import numpy as np
import pytest

from compilewatch.db.judge.decide import Decision, decide
from compilewatch.db.judge.policy import Policy
from compilewatch.db.judge.statistics.contrast import Observations
from compilewatch.db.judge.statistics.evidence import examine_cases
from compilewatch.db.judge.statistics.looks import LOOKS
from compilewatch.db.judge.statistics.noise import Past
from tests.db.verdicts.h100 import processes
from tests.qa.benchmarks.test_first_pull_request import without_wild
from tests.qa.benchmarks.verdict_rules import FAMILIES, FULL, Floats

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(7200)]

POLICY = Policy()
COMPARISONS = 2_000 if FULL else 200
HISTORY = Path(__file__).parents[3] / "docs" / "measured" / "cpu-history.jsonl"


@dataclass(frozen=True)
class Setting:
    """`cases` of which the first changes by `effect`, measured by turns, at most `most` trials a side.
    `noise` is that between processes, of the CV `cv`; `families` the metrics that share the level. With
    `sets_aside` wild trials are left out, as they are of what is stored.
    """

    cases: int = 2
    cv: float = 0.30
    noise: str = "normal"
    effect: float = 0.0
    most: int = 96
    families: int = 1
    sets_aside: bool = False


@dataclass(frozen=True)
class Ended:
    """By case "slower", "faster", "same" or "open", and after how many trials a side."""

    verdicts: tuple[str, ...]
    trials: tuple[int, ...]

    @property
    def alarm(self) -> bool:
        return not {"slower", "faster"}.isdisjoint(self.verdicts)


def until_decided(setting: Setting, generator: np.random.Generator) -> Ended:
    """One gate: every case is looked at until it is decided, and no further."""
    shape = (setting.cases, 2, setting.most)
    x = NOISES[setting.noise](shape, generator)
    x = x if setting.noise.startswith("recorded") else setting.cv * x
    x[0, 1] += np.log1p(setting.effect)
    trials, verdicts = np.zeros(setting.cases, dtype=np.int64), ["open"] * setting.cases
    for look in (*LOOKS[setting.most > LOOKS].tolist(), setting.most):
        is_open = np.array([each == "open" for each in verdicts])
        if not is_open.any():
            break
        trials[is_open] = look
        judged = judge(x, trials, setting.families, sets_aside=setting.sets_aside)
        for case in np.flatnonzero(is_open).tolist():
            for name, flags in (
                ("slower", judged.regressed),
                ("faster", judged.improved),
                ("same", judged.same),
            ):
                verdicts[case] = name if flags[case] else verdicts[case]
    return Ended(tuple(verdicts), tuple(trials.tolist()))


def judge(x: Floats, trials: Floats, families: int, *, sets_aside: bool = False) -> Decision:
    """The first `trials` of each case, of log values of shape (cases, 2, trials)."""
    cases = len(x)
    case, side, trial = np.indices(x.shape)
    mask = trial < trials[:, None, None]
    case, side, trial, values = case[mask], side[mask], trial[mask], x[mask]
    observed = Observations(case, side, np.zeros_like(side), 2 * trial + side, values)
    observed = without_wild(observed) if sets_aside else observed
    tested = examine_cases(observed, Past.empty(), cases, POLICY, until_decided=True)
    limits = POLICY.for_case("simulated", "default", next(iter(POLICY.thresholds)))
    return decide(
        tested,
        POLICY,
        minimum_effect=np.full(cases, limits.minimum_effect),
        margin=np.full(cases, limits.unchanged_margin),
        families=families,
    )


def _two_modes(shape: tuple[int, ...], generator: np.random.Generator) -> Floats:
    return (3.0 * generator.choice((-1.0, 1.0), shape) + generator.standard_normal(shape)) / np.sqrt(10.0)


def _of_the_cpu(shape: tuple[int, ...], generator: np.random.Generator) -> Floats:
    """Each case with what the trials of one recorded case differed by within a run; smoothed."""
    spreads = _recorded()
    x = np.empty(shape)
    for case, number in enumerate(generator.integers(len(spreads), size=shape[0])):
        drawn = generator.choice(spreads[number], shape[1:])
        jitter = 0.5 * spreads[number].std() * generator.standard_normal(shape[1:])
        x[case] = (drawn + jitter) / np.sqrt(1.25)
    return x


def _recorded() -> list[Floats]:
    by_run: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for line in HISTORY.read_text(encoding="utf-8").splitlines():
        trial = json.loads(line)
        if trial["status"] == "ok" and not trial["workload"]["name"].startswith("canary"):
            name = f"{trial['workload']['name']} / {trial['strategy']['name']}"
            by_run[name][trial["run_id"]].append(np.log(median(trial["samples_ns"])))
    return [
        np.concatenate([(x - np.mean(x)) * np.sqrt(len(x) / (len(x) - 1)) for x in runs.values()])
        for runs in by_run.values()
    ]


def _of_the_h100(shape: tuple[int, ...], generator: np.random.Generator) -> Floats:
    """The same of the wall times of seven processes of an H100, eager and compiled."""
    known = np.concatenate([each[:, :, 2].T for each in processes().values()])
    known = (known - known.mean(axis=1, keepdims=True)) * np.sqrt(7 / 6)
    x = np.empty(shape)
    for case, number in enumerate(generator.integers(len(known), size=shape[0])):
        drawn = generator.choice(known[number], shape[1:])
        jitter = 0.5 * known[number].std() * generator.standard_normal(shape[1:])
        x[case] = (drawn + jitter) / np.sqrt(1.25)
    return x


NOISES: dict[str, Callable[[tuple[int, ...], np.random.Generator], Floats]] = {
    "normal": lambda shape, generator: generator.standard_normal(shape),
    "heavy tails (t, 3 df)": lambda shape, generator: generator.standard_t(3, shape) / np.sqrt(3.0),
    "two modes": _two_modes,
    "recorded, 2 vCPUs": _of_the_cpu,
    "recorded, H100": _of_the_h100,
}
"""Of unit variance, but what is recorded."""


def ended(setting: Setting, comparisons: int = COMPARISONS, seed: int = 1) -> list[Ended]:
    generator = np.random.default_rng(seed)
    return [until_decided(setting, generator) for _ in range(comparisons)]


def alarms(setting: Setting, comparisons: int = COMPARISONS) -> float:
    """Share of gates over unchanged code that raise anything, at whatever look."""
    return float(np.mean([each.alarm for each in ended(setting, comparisons)]))


def found(setting: Setting, comparisons: int = COMPARISONS) -> tuple[float, float]:
    """Share of gates that call the first case slower, and the median trials a side they take."""
    gates = ended(setting, comparisons, seed=2)
    hits = [each.verdicts[0] == "slower" for each in gates]
    return float(np.mean(hits)), float(np.median([each.trials[0] for each in gates]))


ROWS = [
    (noise, cv)
    for noise in NOISES
    for cv in ([None] if noise.startswith("recorded") else [0.01, 0.03, 0.15, 0.30])
]


@pytest.mark.parametrize(("noise", "cv"), ROWS)
def test_gates(noise: str, cv: float | None) -> None:
    """A row of the table of docs/measured/verdicts.md: of two cases and of four."""
    figures = defaultdict(list)
    for cases in (2, 4):
        here = Setting(cases=cases, cv=cv or 0.0, noise=noise)
        shared = replace(here, families=FAMILIES)
        false = alarms(shared)
        twice, after = found(replace(shared, effect=1.0, most=20))
        tenth, after_tenth = found(replace(shared, effect=0.10))
        equal = ended(shared, seed=3)
        same = np.mean([each.verdicts[0] == "same" for each in equal])
        same_after = np.median([each.trials[0] for each in equal])
        figures["any alarm"].append(f"{false:.3f}")
        figures["the whole level"].append(f"{alarms(here):.3f}")
        figures["2 times, within 20"].append(f"{twice:.2f} ({after:g})")
        figures["+10 %"].append(f"{tenth:.2f} ({after_tenth:g})")
        figures["same"].append(f"{same:.2f} ({same_after:g})")
        assert false <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / COMPARISONS)
        assert twice >= 0.95
    print(f"\n| {noise} | {cv or '':.0%} |" if cv else f"\n| {noise} |  |", end="")
    print(
        "".join(
            f" {'/'.join(each) if name.startswith(('any', 'the')) else ', '.join(each)} |"
            for name, each in figures.items()
        )
    )


@pytest.mark.parametrize("noise", [noise for noise in NOISES if not noise.startswith("recorded")])
def test_with_wild_trials_set_aside(noise: str) -> None:
    """Of processes that scatter by 30 %, where some are."""
    here = Setting(cv=0.30, noise=noise, families=FAMILIES, sets_aside=True)
    false, whole = alarms(here), alarms(replace(here, families=1))
    twice, after = found(replace(here, effect=1.0, most=20))
    print(f"\n{noise}: any alarm {false:.3f}, one metric alone {whole:.3f}, twice {twice:.2f} ({after:g})")
    assert false <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / COMPARISONS)
    assert twice >= 0.95


@pytest.mark.parametrize("cv", [0.01, 0.03, 0.15])
def test_a_change_of_five_percent_is_not_called_the_same(cv: float) -> None:
    gates = ended(Setting(cv=cv, effect=0.05, families=FAMILIES), seed=4)
    share = np.mean([each.verdicts[0] == "same" for each in gates])
    print(f"\n+5 % called the same at CV {cv:.0%}: {share:.4f}")
    assert share <= 0.01
