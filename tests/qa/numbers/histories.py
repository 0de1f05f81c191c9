"""Random histories: what a database may hold when somebody asks the same question at two doors."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from compilewatch.db.engine.session import open_database
from compilewatch.db.records.requests import RunStatus
from compilewatch.db.records.trial import Build, CacheState, Strategy, Trial
from compilewatch.db.store.trials import end_run, save_trials, start_run
from tests.builders import (
    MS,
    SECOND,
    START,
    make_build,
    make_cold_start,
    make_machine,
    make_strategy,
    make_trial,
)

MACHINES = ("gpu-box-3", "gpu-box-4")
RELEASES = ("2.11.0", "2.12.0", "2.13.0")
WORKLOADS = ("bert-base", "mlp", "elementwise")
STRATEGIES = ("eager", "default", "max-autotune", "default+warm")
FACTORS = (1.0, 1.0, 1.0, 0.7, 1.12, 1.6, 2.5)
"""By how much a build changes a case."""
MOST_TRIALS = 8
CURED, SLOWED = 0.25, 0.25
"""The shares of histories with a case that one release slowed and the next one mended, and with one that the
newest release alone slowed.
"""
ENDED = 0.8
"""The share of histories whose announced runs have ended; `gate` judges no other."""


class History(list[Trial]):
    """Trials, printed in short. `planned` are the trials announced of each run, where it was announced;
    `ended`: whether such a run has ended.
    """

    planned: int | None = None
    ended: bool = True

    def __repr__(self) -> str:
        return repr([(each.trial_id, each.latency_samples_ns[:1]) for each in self[:20]])


@dataclass(frozen=True)
class Kind:
    """What a history is like.

    `take_turns`: the builds of a machine are measured by turns, else one after the other. `environment`: the
    newest build was measured with another variable set. `spread`: relative, between the trials of a case.
    `failing`: the share of trials that fail. `wild`: one trial took ten times as long.
    """

    machines: tuple[str, ...]
    builds: tuple[str, ...]
    workloads: tuple[str, ...]
    strategies: tuple[str, ...]
    most_trials: int
    take_turns: bool
    environment: bool
    spread: float
    failing: float
    wild: bool


def numbered(number: int, machines: int = len(MACHINES)) -> History:
    """The history of this number: of one to three builds on up to so many machines."""
    draw = random.Random(number)

    def some(names: tuple[str, ...], most: int | None = None) -> tuple[str, ...]:
        return tuple(draw.sample(names, draw.randint(1, most or len(names))))

    kind = Kind(
        machines=some(MACHINES, machines if draw.random() < 0.25 else 1),
        builds=some(RELEASES),
        workloads=some(WORKLOADS),
        strategies=("eager", *some(STRATEGIES[1:])),
        most_trials=draw.randint(1, MOST_TRIALS),
        take_turns=draw.random() < 0.5,
        environment=draw.random() < 0.25,
        spread=draw.choice((0.002, 0.01, 0.1, 0.7)),
        failing=draw.choice((0.0, 0.0, 0.1, 0.3)),
        wild=draw.random() < 0.5,
    )
    history = make_history(kind, seed=number)
    more = random.Random(f"cured {number}")
    which = more.random() if history else 1.0
    if which < CURED:
        history += _of_releases(kind, (1.0, 6.0, 1.0), more)
    elif which < CURED + SLOWED:
        history += _of_releases(kind, (1.0, 1.0, 6.0), more)
    history.planned = draw.choice((None, draw.randint(1, 60)))
    history.ended = more.random() < ENDED
    return history


def store(history: History, template: Path, path: Path) -> str:
    """The address of a copy of `template` with `history`, its runs announced where they were."""
    shutil.copy(template, path)
    url = f"sqlite:///{path}"
    with open_database(url) as database:
        for run in {each.run_id for each in history} if history.planned else ():
            began = min(each.started_at for each in history if each.run_id == run)
            start_run(
                database,
                run_id=run,
                suite="standard",
                label=None,
                started_at=began,
                planned_trials=history.planned,
            )
        save_trials(database, history)
        for run in {each.run_id for each in history} if history.planned and history.ended else ():
            end_run(database, run, max(each.started_at for each in history), RunStatus.FINISHED)
    return url


def make_history(kind: Kind, seed: int) -> History:
    generator = random.Random(seed)
    history = History()
    for place, machine in enumerate(kind.machines):
        history += _on_machine(kind, machine, place, generator)
    if kind.wild and history:
        number = generator.randrange(len(history))
        history[number] = _wild(history[number])
    return history


def _on_machine(kind: Kind, machine: str, place: int, generator: random.Random) -> Iterator[Trial]:
    cases = [(workload, strategy) for workload in kind.workloads for strategy in kind.strategies]
    levels = {case: generator.uniform(0.3, 40.0) * MS for case in cases}
    # Some cases are not measured, some less often than others.
    rounds = {
        case: generator.randint(0 if generator.random() < 0.2 else 1, kind.most_trials) for case in cases
    }
    factors = {(case, build): generator.choice(FACTORS) for case in cases for build in kind.builds}
    # A build may lack a case that another one has.
    absent = {key for key in factors if generator.random() < 0.08}
    clock = START - timedelta(days=20 - place)
    order = [(build, number) for number in range(kind.most_trials) for build in kind.builds]
    if not kind.take_turns:
        order.sort(key=lambda each: kind.builds.index(each[0]))
    for build, number in order:
        for case in cases:
            if number >= rounds[case] or (case, build) in absent:
                continue
            clock += timedelta(seconds=100)
            began = clock if kind.take_turns else clock + timedelta(days=kind.builds.index(build))
            yield _trial(kind, machine, build, case, levels, factors, began, generator)


def _of_releases(kind: Kind, slower: tuple[float, float, float], generator: random.Random) -> Iterator[Trial]:
    """A workload of its own on the first machine, with every release as many times `slower`."""
    machine, steady = kind.machines[0], replace(kind, spread=0.002, failing=0.0)
    cases = [("released", strategy) for strategy in ("eager", "default")]
    levels = dict.fromkeys(cases, 8 * MS)
    factors = {(case, build): 1.0 for case in cases for build in RELEASES}
    factors |= {(cases[1], build): factor for build, factor in zip(RELEASES, slower, strict=True)}
    clock = START - timedelta(days=20)
    for day, build in enumerate(RELEASES):
        for number in range(12):
            began = clock + timedelta(days=day, seconds=50 + 100 * number)
            yield _trial(steady, machine, build, cases[number % 2], levels, factors, began, generator)


def _trial(
    kind: Kind,
    machine: str,
    build: str,
    case: tuple[str, str],
    levels: dict[tuple[str, str], float],
    factors: dict[tuple[tuple[str, str], str], float],
    began: Any,
    generator: random.Random,
) -> Trial:
    workload, strategy = case
    latency_ns, control_ns, compile_ns = (
        level * generator.lognormvariate(0.0, kind.spread)
        for level in (levels[case] * factors[case, build], levels[workload, "eager"], 6.0 * SECOND)
    )
    more: dict[str, Any] = {}
    if generator.random() < kind.failing:
        more["failure"] = generator.choice(["timeout", "wrong_result"])
    else:
        compiled = strategy != "eager"
        more["cold_start"] = make_cold_start(latency_ns, compile_ns=round(compile_ns), compiled=compiled)
    return make_trial(
        trial_id=f"{machine}-{build}-{workload}-{strategy}-{began:%d%H%M%S}".replace("+", "-"),
        run_id=f"run-{machine}-{build}",
        machine=make_machine(machine, threads=4 + MACHINES.index(machine)),
        build=_build(kind, build),
        workload=workload,
        strategy=_strategy(strategy),
        latency_ns=latency_ns,
        control_latency_ns=control_ns,
        compile_ns=round(compile_ns),
        samples=5,
        started_at=began,
        seed=generator.randrange(2**31),
        **more,
    )


def _build(kind: Kind, release: str) -> Build:
    if not kind.environment or release != max(kind.builds):
        return make_build(release)
    return make_build(release, settings={"environment": {"TORCHINDUCTOR_VEC_ISA_OK": "1"}})


def _strategy(name: str) -> Strategy:
    mode, _, modifier = name.partition("+")
    strategy = make_strategy(mode)
    return strategy.model_copy(update={"name": name, "cache": CacheState.WARM}) if modifier else strategy


def _wild(trial: Trial) -> Trial:
    """The same with a latency ten times as long."""
    slow = [10 * each for each in trial.latency_samples_ns]
    return Trial.model_validate(trial.to_document() | {"samples_ns": slow})
