"""What components carry, from hybrids with planted effects; the arithmetic against its own definition."""

from __future__ import annotations

import json
import math
import statistics
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compilewatch.db.judge.compare.attribution import attribute, hybrids_of, shapley_weights, terms_of
from compilewatch.db.judge.policy import Policy
from compilewatch.db.records.vocabulary import Metric
from tests.db.judge import frames
from tests.db.metrics.frames import trials_frame

HISTORY = Path(__file__).parents[4] / "docs" / "measured" / "cpu-history.jsonl"
TWO, THREE, FOUR = ("torch", "transformers"), ("torch", "numpy", "transformers"), ("a", "b", "c", "d")


def measured(components, effect, *, rounds=8, noise=0.01, drift=0.0, seed=0, without=(), failing=()):
    """Trials by turns of every hybrid, with `effect(hybrid)` the log of its latency, and their batch."""
    generator = np.random.default_rng(seed)
    hybrids = [each for each in hybrids_of(components) if each not in without]
    runs = {hybrid: f"run-{number}" for number, hybrid in enumerate(hybrids)}
    rows = []
    for round_ in range(rounds):
        night = generator.normal(0, drift)
        for hybrid in hybrids:
            x = effect(hybrid) + night + generator.normal(0, noise)
            fields = {"status": "failed", "latency_ns": None} if hybrid in failing else {}
            values = {"run_id": runs[hybrid], "latency_ns": 1e7 * math.exp(x)} | fields
            rows.append(frames.trial("bert", "eager", f"build-{round_}", **values))
    return trials_frame(rows), [runs]


def found(components, effect, **options):
    (case,) = attribute(*measured(components, effect, **options), components, Policy(), Metric.LATENCY)
    return case


def additive(**sizes):
    return lambda hybrid: sum(size for name, size in sizes.items() if name in hybrid)


@pytest.mark.parametrize("components", [TWO, THREE])
@pytest.mark.parametrize("guilty", ["torch", "transformers"])
def test_the_component_that_carries_the_change_is_named(components, guilty):
    case = found(components, additive(**{guilty: 0.2}))
    assert case.named == (guilty,)
    carried = {each.components[0]: each for each in case.carried}
    assert carried[guilty].interval[0] < math.expm1(0.2) < carried[guilty].interval[1]
    assert not any(each.real for each in case.together)
    assert case.complete
    assert case.unknown == ()


def test_two_components_share_a_change():
    case = found(THREE, additive(torch=-0.3, transformers=0.1))
    assert case.named == ("torch", "transformers")


def test_a_drifting_machine_is_in_every_hybrid_and_cancels():
    case = found(TWO, additive(torch=0.08), drift=0.3)
    assert case.named == ("torch",)


def test_what_takes_both_is_called_an_interaction_and_nothing_alone():
    case = found(TWO, lambda hybrid: 0.2 if len(hybrid) == 2 else 0.0)
    (together,) = case.together
    assert together.components == TWO
    assert together.real
    assert together.interval[0] < math.expm1(0.2) < together.interval[1]
    assert not any(each.real for each in case.alone)
    # Each carries half: it does not matter which of them is changed last.
    assert [each.change for each in case.carried] == pytest.approx([math.expm1(0.1)] * 2, abs=0.02)


def test_an_interaction_of_three_is_that_of_three():
    case = found(THREE, lambda hybrid: 0.3 if len(hybrid) == 3 else 0.0)
    real = {each.components for each in case.together if each.real}
    assert THREE in real
    assert not any(each.real for each in case.alone)


def test_opposite_changes_that_hide_each_other_are_both_named():
    case = found(TWO, additive(torch=0.15, transformers=-0.15))
    assert set(case.named) == set(TWO)


def test_a_change_below_the_smallest_that_matters_is_not_named():
    case = found(TWO, additive(torch=0.012), noise=0.001)
    assert case.named == ()


def test_in_identical_builds_nothing_is_named():
    cases = [found(TWO, lambda _: 0.0, noise=0.05, drift=0.1, rounds=6, seed=seed) for seed in range(20)]
    # The false discovery rate of the policy is 5 %; of 20 comparisons 5 or more are false in 1 of 400.
    assert sum(case.named != () for case in cases) < 5


def recorded_latencies():
    """Latencies of real processes of one build and case, as the recorded history of a CPU has them."""
    groups = {}
    for line in HISTORY.read_text(encoding="utf-8").splitlines():
        trial = json.loads(line)
        if trial["status"] == "ok":
            build = json.dumps(trial["build"], sort_keys=True)
            key = trial["workload"]["name"], trial["strategy"]["name"], build
            groups.setdefault(key, []).append(statistics.median(trial["samples_ns"]))
    return [groups[key] for key in sorted(groups) if len(groups[key]) == 5]


def test_in_twenty_comparisons_of_identical_builds_no_component_is_named():
    """Each hybrid's trials are drawn from five real processes of one build."""
    generator = np.random.default_rng(0)
    for latencies in recorded_latencies()[:20]:
        runs = {hybrid: f"run-{number}" for number, hybrid in enumerate(hybrids_of(TWO))}
        rows = [
            frames.trial("bert", "eager", "one", run_id=run, latency_ns=float(generator.choice(latencies)))
            for _ in range(8)
            for run in runs.values()
        ]
        (case,) = attribute(trials_frame(rows), [runs], TWO, Policy(), Metric.LATENCY)
        assert case.named == ()


@pytest.mark.slow
def test_judged_three_times_an_innocent_component_is_rarely_named():
    """As the command does it: after 4, 8 and 12 rounds, until each component is decided."""
    generator, policy, wrong = np.random.default_rng(5), Policy().shared_over(3), 0
    recorded = recorded_latencies()
    for number in range(200):
        runs = {hybrid: f"run-{place}" for place, hybrid in enumerate(hybrids_of(TWO))}
        latencies = recorded[number % len(recorded)]
        rows = [
            frames.trial(
                *("bert", "eager", "one"),
                run_id=run,
                latency_ns=float(generator.choice(latencies)) * (1.2 if "torch" in hybrid else 1.0),
            )
            for _ in range(12)
            for hybrid, run in runs.items()
        ]
        for rounds in (4, 8, 12):
            frame = trials_frame(rows[: rounds * len(runs)])
            (case,) = attribute(frame, [runs], TWO, policy, Metric.LATENCY)
            if case.decided:
                break
        wrong += "transformers" in case.named
    assert wrong <= 10


def test_judged_several_times_each_time_has_its_part_of_the_level():
    options = {"noise": 0.05, "rounds": 6}
    cases = [measured(TWO, lambda _: 0.0, seed=seed, **options) for seed in range(30, 46)]

    def named(policy):
        judged = (attribute(frame, batches, TWO, policy, Metric.LATENCY) for frame, batches in cases)
        return {number for number, (case,) in enumerate(judged) if case.named}

    assert named(Policy().shared_over(3)) < named(Policy())


def test_without_one_hybrid_the_other_ways_tell():
    missing = frozenset(["torch"])
    case = found(TWO, additive(torch=0.2), without=[missing])
    assert case.named == ("torch",)
    assert not case.complete
    assert case.together == ()
    assert [each.components for each in case.alone] == [("transformers",)]


def test_a_hybrid_whose_trials_fail_is_as_one_that_is_not_there():
    case = found(TWO, additive(torch=0.2), failing=[frozenset(["torch"])])
    assert case.named == ("torch",)
    assert not case.complete


def test_without_hybrids_nothing_is_told_of_the_components():
    without = [frozenset([each]) for each in TWO]
    case = found(TWO, additive(torch=0.2), without=without)
    assert (case.named, case.carried, case.unknown) == ((), (), TWO)
    assert case.whole.real


def test_without_an_end_nothing_is_told():
    case = found(TWO, additive(torch=0.2), failing=[frozenset()])
    assert (case.whole, case.unknown) == (None, TWO)


def test_of_four_components_each_is_changed_alone_and_last():
    assert len(hybrids_of(FOUR)) == 10
    case = found(FOUR, additive(c=0.2))
    assert case.named == ("c",)
    assert not any(each.real for each in case.together)
    case = found(FOUR, lambda hybrid: 0.2 if {"a", "b"} <= hybrid else 0.0)
    assert {each.components for each in case.together if each.real} == {("a",), ("b",)}


def test_one_component_carries_all():
    case = found(("torch",), additive(torch=0.2))
    assert case.named == ("torch",)
    assert case.carried == (case.whole,)


def test_rounds_that_lack_a_hybrid_are_left_aside():
    frame, batches = measured(TWO, additive(torch=0.2))
    last = frame["trial_id"].iloc[-1]
    (case,) = attribute(frame[frame["trial_id"] != last], batches, TWO, Policy(), Metric.LATENCY)
    assert case.rounds == 7


def test_no_trials_are_no_case():
    frame, batches = measured(TWO, additive())
    assert attribute(frame.iloc[:0], batches, TWO, Policy(), Metric.LATENCY) == []


values_of_three = st.lists(st.floats(-1, 1), min_size=8, max_size=8)


@given(values_of_three)
def test_carried_parts_are_the_average_over_all_orders_and_make_the_whole(values):
    x = dict(zip(hybrids_of(THREE), values, strict=True))
    expected = dict.fromkeys(THREE, 0.0)
    for order in permutations(THREE):
        for place, name in enumerate(order):
            before = frozenset(order[:place])
            expected[name] += (x[before | {name}] - x[before]) / 6
    terms = terms_of(THREE, list(x))
    carried = {term.components[0]: sum(w * x[h] for h, w in term.weights.items()) for term in terms.carried}
    assert carried == pytest.approx(expected)
    assert sum(carried.values()) == pytest.approx(x[frozenset(THREE)] - x[frozenset()])


@given(values_of_three)
def test_parts_that_only_add_up_have_no_interaction(values):
    sizes = dict(zip(THREE, values, strict=False))
    for term in terms_of(THREE, hybrids_of(THREE)).together:
        total = sum(w * sum(sizes[name] for name in hybrid) for hybrid, w in term.weights.items())
        assert total == pytest.approx(0.0, abs=1e-12)


@given(st.sets(st.sampled_from(hybrids_of(THREE))))
def test_a_missing_hybrid_is_never_weighed(measured_ones):
    terms = terms_of(THREE, measured_ones)
    every = [*terms.whole, *terms.carried, *terms.alone, *terms.together]
    assert all(set(term.weights) <= measured_ones for term in every)
    assert all(sum(term.weights.values()) == pytest.approx(0.0) for term in every)


def test_the_interaction_of_two_is_the_difference_of_differences():
    weights = shapley_weights(TWO, TWO)
    both, first, second = frozenset(TWO), frozenset(TWO[:1]), frozenset(TWO[1:])
    assert weights == {both: 1.0, first: -1.0, second: -1.0, frozenset(): 1.0}
