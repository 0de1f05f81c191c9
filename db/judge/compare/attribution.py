"""How much of a change each component of a build carries, from builds that mix the versions of two.

A hybrid has some components at the head's version and the others at the base's. With all hybrids measured a
component carries its Shapley value: what it adds, averaged over every order in which the components could
have been changed (Shapley 1953, A value for n-person games). What only comes where several change is the
Shapley interaction index (Grabisch & Roubens 1999, Int. J. Game Theory 28, 547-565). Where hybrids are
missing, a component carries the mean of what it adds first and what it adds last, as far as those are there.

All of it is on the log scale and made of rounds, in each of which every hybrid was measured once. A round
gives one pair of values of each term, and the pairs are judged as those of two builds are.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, combinations

import numpy as np
from pandas import DataFrame

from compilewatch.db.judge.compare.measured import log_values
from compilewatch.db.judge.decide import decide
from compilewatch.db.judge.policy import Policy
from compilewatch.db.judge.results import Result
from compilewatch.db.judge.significance import interval
from compilewatch.db.judge.statistics.contrast import Observations
from compilewatch.db.judge.statistics.evidence import examine_cases
from compilewatch.db.judge.statistics.noise import Past
from compilewatch.db.metrics.groups import Floats, Groups
from compilewatch.db.records.vocabulary import Metric

Hybrid = frozenset[str]
"""The components that are at the head's version: none in the base, all of them in the head."""

FULL_FACTORIAL = 3
"""Up to so many components every combination is measured; of more each alone, and all but each."""

_FAMILIES = 2
"""What is announced: what components carry, and what they do together."""


@dataclass(frozen=True)
class Term:
    """What is estimated of `components`: the sum of the hybrids' values by weight."""

    components: tuple[str, ...]
    weights: Mapping[Hybrid, float]


@dataclass(frozen=True)
class Terms:
    """Everything that is estimated. `alone` is what a component does to the base, `together` what several do
    beyond what each does.
    """

    whole: list[Term] = field(default_factory=list)
    carried: list[Term] = field(default_factory=list)
    alone: list[Term] = field(default_factory=list)
    together: list[Term] = field(default_factory=list)


class Effect(Result):
    """A relative change with its interval at `Policy.confidence`. `real`: shown, and at least the smallest
    change that matters; `none`: shown to lie within the margin. Neither of them is undecided.
    """

    components: tuple[str, ...]
    change: float
    interval: tuple[float, float] | None
    p_value: float | None
    real: bool
    none: bool


class CaseAttribution(Result):
    """What is known of one case. `unknown` are components of which nothing can be estimated; `complete` says
    that every combination was measured, so that the parts make the whole.
    """

    workload: str
    strategy: str
    rounds: int
    complete: bool
    whole: Effect | None
    carried: tuple[Effect, ...]
    alone: tuple[Effect, ...]
    together: tuple[Effect, ...]
    unknown: tuple[str, ...]

    @property
    def named(self) -> tuple[str, ...]:
        """The components that are shown to carry a change, the largest first."""
        by_size = sorted(self.carried, key=lambda each: -abs(math.log1p(each.change)))
        real = (each for each in by_size if each.real)
        return tuple(each.components[0] for each in real)

    @property
    def undecided(self) -> tuple[str, ...]:
        """The components that may carry a change, or none."""
        return tuple(each.components[0] for each in self.carried if not each.real and not each.none)

    @property
    def decided(self) -> bool:
        return bool(self.carried) and not self.undecided


def hybrids_of(components: Sequence[str]) -> list[Hybrid]:
    """What is measured: the base first, the head last."""
    whole = frozenset(components)
    if len(components) <= FULL_FACTORIAL:
        return _subsets(components)
    ones = [frozenset([each]) for each in components]
    return [frozenset(), *ones, *(whole - one for one in ones), whole]


def _subsets(components: Collection[str]) -> list[Hybrid]:
    sizes = (combinations(components, size) for size in range(len(components) + 1))
    return [frozenset(each) for each in chain.from_iterable(sizes)]


def terms_of(components: Sequence[str], measured: Collection[Hybrid]) -> Terms:
    """Everything that can be estimated where only these hybrids were measured."""
    base, head = frozenset[str](), frozenset(components)
    terms = Terms()
    if not {base, head} <= set(measured):
        return terms
    terms.whole.append(Term(tuple(components), {head: 1.0, base: -1.0}))
    if len(components) == 1:
        terms.carried.extend(terms.whole)
        return terms
    complete = set(_subsets(components)) <= set(measured)
    for each in components:
        only, but = frozenset([each]), head - {each}
        first = {only: 1.0, base: -1.0} if only in measured else None
        last = {head: 1.0, but: -1.0} if but in measured else None
        if first:
            terms.alone.append(Term((each,), first))
        if complete:
            terms.carried.append(Term((each,), shapley_weights(components, [each])))
        elif either := [way for way in (first, last) if way]:
            terms.carried.append(Term((each,), _sum(either, 1.0 / len(either))))
        if first and last and not complete:
            terms.together.append(Term((each,), _sum([last, {k: -v for k, v in first.items()}], 1.0)))
    if complete:
        several = (each for each in _subsets(components) if len(each) > 1)
        ordered = (tuple(sorted(each, key=components.index)) for each in several)
        terms.together.extend(Term(each, shapley_weights(components, each)) for each in ordered)
    return terms


def _sum(weights: Sequence[Mapping[Hybrid, float]], factor: float) -> dict[Hybrid, float]:
    total: dict[Hybrid, float] = {}
    for each in weights:
        for hybrid, weight in each.items():
            total[hybrid] = total.get(hybrid, 0.0) + factor * weight
    return total


def shapley_weights(components: Sequence[str], group: Collection[str]) -> dict[Hybrid, float]:
    """The weight of each combination in the Shapley value of one component, or in the interaction index of
    several: 1 in all, half of it positive.
    """
    others = [each for each in components if each not in group]
    total: dict[Hybrid, float] = {}
    for before in _subsets(others):
        orders = math.factorial(len(before)) * math.factorial(len(others) - len(before))
        weight = orders / math.factorial(len(others) + 1)
        for part in _subsets(group):
            sign = (-1.0) ** (len(group) - len(part))
            total[before | part] = total.get(before | part, 0.0) + sign * weight
    return total


def attribute(
    trials: DataFrame,
    batches: Sequence[Mapping[Hybrid, str]],
    components: Sequence[str],
    policy: Policy,
    metric: Metric,
) -> list[CaseAttribution]:
    """What each component carries of every case of a trials frame.

    `batches` map hybrids to their runs, those of one batch having taken turns. The n-th trials of a case in
    the runs of a batch are a round; rounds without a value of each hybrid are left aside, and so are hybrids
    of which a case has no value at all.
    """
    values = log_values(trials, Groups.by(trials, ["workload", "strategy", "run_id"])).metrics[metric]
    frame = trials.assign(x=values).sort_values(["started_at", "trial_id"])
    runs = {run: (number, hybrid) for number, each in enumerate(batches) for hybrid, run in each.items()}
    rounds: dict[tuple[str, str], dict[tuple[int, int], dict[Hybrid, float]]] = {}
    frame["place"] = frame.groupby(["workload", "strategy", "run_id"]).cumcount()
    for row in frame.itertuples():
        if row.run_id in runs:
            batch, hybrid = runs[str(row.run_id)]
            case = rounds.setdefault((str(row.workload), str(row.strategy)), {})
            case.setdefault((batch, int(row.place)), {})[hybrid] = float(row.x)  # type: ignore[arg-type]
    tables = {case: _table(mine) for case, mine in sorted(rounds.items())}
    return list(_attributions(tables, components, policy, metric))


@dataclass(frozen=True)
class _Table:
    """Log values of one case, shape (rounds, hybrids). `batch` numbers the batch of each round."""

    hybrids: list[Hybrid]
    x: Floats
    batch: list[int]


def _table(rounds: Mapping[tuple[int, int], Mapping[Hybrid, float]]) -> _Table:
    valued = [each for row in rounds.values() for each, x in row.items() if math.isfinite(x)]
    hybrids = sorted(set(valued), key=lambda each: (len(each), sorted(each)))
    whole = {
        key: [row.get(each, math.nan) for each in hybrids]
        for key, row in sorted(rounds.items())
        if all(math.isfinite(row.get(each, math.nan)) for each in hybrids)
    }
    values = np.array(list(whole.values()), dtype=np.float64).reshape(len(whole), len(hybrids))
    return _Table(hybrids, values, [batch for batch, _ in whole])


def _attributions(
    tables: Mapping[tuple[str, str], _Table], components: Sequence[str], policy: Policy, metric: Metric
) -> Iterator[CaseAttribution]:
    terms = {
        case: terms_of(components, table.hybrids if len(table.x) else ()) for case, table in tables.items()
    }
    whole, carried, alone, together = (
        _family(
            [(case, term) for case in tables for term in getattr(terms[case], name)], tables, policy, metric
        )
        for name in ("whole", "carried", "alone", "together")
    )
    for case, table in tables.items():
        known = {name for effect in carried[case] for name in effect.components}
        yield CaseAttribution(
            workload=case[0],
            strategy=case[1],
            rounds=len(table.x),
            complete=set(_subsets(components)) <= set(table.hybrids),
            whole=next(iter(whole[case]), None),
            carried=carried[case],
            alone=alone[case],
            together=together[case],
            unknown=tuple(each for each in components if each not in known),
        )


def _family(
    terms: Sequence[tuple[tuple[str, str], Term]],
    tables: Mapping[tuple[str, str], _Table],
    policy: Policy,
    metric: Metric,
) -> dict[tuple[str, str], tuple[Effect, ...]]:
    """By case the effects of terms that are judged together: each is a pair of values a round."""
    effects: dict[tuple[str, str], tuple[Effect, ...]] = dict.fromkeys(tables, ())
    if not terms:
        return effects
    limits = [policy.for_case(*case, metric) for case, _ in terms]
    observed = _observations([(tables[case], term) for case, term in terms])
    evidence = examine_cases(observed, Past.empty(), len(terms), policy)
    decision = decide(
        evidence,
        policy,
        minimum_effect=np.array([each.minimum_effect for each in limits]),
        margin=np.array([each.unchanged_margin for each in limits]),
        families=_FAMILIES,
    )
    low, high = interval(evidence.test, policy.confidence)
    for number, (case, term) in enumerate(terms):
        p_value = float(evidence.test.p_value[number])
        effect = Effect(
            components=term.components,
            change=math.expm1(float(evidence.test.difference[number])),
            interval=(float(low[number]), float(high[number])) if np.isfinite(low[number]) else None,
            p_value=p_value if math.isfinite(p_value) else None,
            real=bool(decision.changed[number]),
            none=bool(decision.same[number]),
        )
        effects[case] += (effect,)
    return effects


def _observations(terms: Sequence[tuple[_Table, Term]]) -> Observations:
    """Of each term and round the sum of what it adds, as the head's side, and of what it takes away."""
    x: list[float] = []
    places: list[tuple[int, int, int, int]] = []
    for number, (table, term) in enumerate(terms):
        weights = np.array([term.weights.get(each, 0.0) for each in table.hybrids])
        for side, part in enumerate((np.clip(-weights, 0, None), np.clip(weights, 0, None))):
            x += (table.x @ part).tolist()
            places += [(number, side, batch, row) for row, batch in enumerate(table.batch)]
    case, side_of, run, order = np.array(places, dtype=np.int64).T
    return Observations(case, side_of, run, order, np.array(x, dtype=np.float64))
