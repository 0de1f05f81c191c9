"""The race of `advise`: who is measured next, who leaves, what is promised."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from compilewatch.db.judge.policy import Policy
from compilewatch.db.judge.statistics.race import Left, Race

POLICY = Policy()
NAMES = ("a", "b", "c", "d")
costs = st.floats(-2.0, 2.0)
trials = st.lists(st.tuples(st.sampled_from(NAMES), costs), max_size=20)


def race_of(noted: list[tuple[str, float]], names: tuple[str, ...] = NAMES, **options: object) -> Race:
    race = Race(names, POLICY, eager="eager", **options)  # type: ignore[arg-type]
    for name, cost in noted:
        race.note(name, cost)
    return race


def seen(race: Race) -> tuple[object, ...]:
    return (race.left, race.faster, race.leader, race.contenders, race.choice(), race.next_up({}))


def run(race: Race, cost: dict[str, float], sd: float, most: int, seed: int = 1) -> list[str]:
    """The candidates in the order they are measured."""
    generator = np.random.default_rng(seed)
    order: list[str] = []
    while len(order) < most and (name := race.next_up({})) is not None:
        race.note(name, cost[name] + sd * float(generator.standard_normal()))
        order.append(name)
    return order


@given(trials)
def test_the_same_trials_make_the_same_race(noted: list[tuple[str, float]]) -> None:
    assert seen(race_of(noted)) == seen(race_of(noted))


@given(trials)
def test_what_left_is_neither_chosen_nor_measured_nor_comes_back(noted: list[tuple[str, float]]) -> None:
    race, gone = race_of([]), set[str]()
    for name, cost in noted:
        race.note(name, cost)
        assert gone <= set(race.left)
        gone = set(race.left)
        assert not gone & {race.choice(), race.next_up({}), race.leader}
        assert not gone & race.faster


@given(trials, st.sampled_from(NAMES))
def test_a_wrong_result_leaves_at_once_and_is_never_chosen(
    noted: list[tuple[str, float]], wrong: str
) -> None:
    race = race_of([*noted, (wrong, -5.0), (wrong, -5.0), (wrong, -5.0)])
    race.leave(wrong, Left.WRONG)
    assert race.choice() != wrong
    assert wrong not in (*race.running, *race.faster, race.next_up({}))


@given(trials)
def test_names_do_not_matter(noted: list[tuple[str, float]]) -> None:
    other = dict(zip(NAMES, ("w", "x", "y", "z"), strict=True))
    renamed = race_of([(other[name], cost) for name, cost in noted], tuple(other.values()))
    race = race_of(noted)
    assert [other.get(name, name) for name in race.left] == list(renamed.left)
    assert other.get(race.choice(), race.choice()) == renamed.choice()


@given(trials)
def test_never_a_candidate_that_is_slower_than_eager(noted: list[tuple[str, float]]) -> None:
    race = race_of(noted)
    assert race.mean(race.choice()) <= 0.0


def test_each_once_in_order_then_the_leader() -> None:
    order = run(race_of([]), {"a": 0.3, "b": 0.2, "c": -0.4, "d": 0.1}, 0.0, 5)
    assert order == ["a", "b", "c", "d", "c"]


def test_nothing_that_does_not_end_in_time() -> None:
    race = race_of([("a", -0.1)])
    price = {"a": 10.0, "b": 50.0, "c": 20.0, "d": 20.0}
    assert race.next_up(price, 60.0) == "b"
    assert race.next_up(price, 40.0) == "c"
    assert race.next_up(price, 15.0) == "a"
    assert race.next_up(price, 5.0) is None


def test_what_costs_more_to_measure_is_measured_less() -> None:
    cost = {"a": -0.2, "b": -0.19}
    race = race_of([], ("a", "b"), margin=0.0001)
    generator, counted = np.random.default_rng(3), {"a": 0, "b": 0}
    for _ in range(30):
        name = race.next_up({"a": 1.0, "b": 100.0})
        assert name is not None
        race.note(name, cost[name] + 0.05 * float(generator.standard_normal()))
        counted[name] += 1
    assert counted["a"] > 3 * counted["b"]


def test_the_first_test_by_hand() -> None:
    """Of two candidates and eager each test of the first look has 0.05 / 4 / 2."""
    level = 0.05 * (3.0 / 12.0) / 2.0
    # Too calm for their own noise to count: the floor of 0.2 %, with the two degrees of freedom of both.
    critical = float(stats.t.ppf(1.0 - level, 2))
    error = 0.002 * math.sqrt(1.0 / 2.0 + 1.0 / 2.0)
    for factor, left in ((0.9, {}), (1.2, {"b": Left.WORSE})):
        gap = factor * critical * error
        race = race_of([("a", -1.0), ("a", -1.0), ("b", -1.0 + gap), ("b", -1.0 + gap)], ("a", "b"))
        tested = race._difference("b", "a")
        assert tested is not None
        assert tested.error == pytest.approx(error)
        assert tested.value == pytest.approx(gap)
        assert race.left == left


def test_the_interval_and_the_promise_agree() -> None:
    for shift in np.linspace(-0.3, 0.05, 26).tolist():
        race = race_of([("a", shift - 0.01), ("a", shift + 0.01), ("a", shift), ("b", 0.1), ("b", 0.11)])
        value, ends = race.against_eager("a")
        assert ends is not None
        assert ends[0] < value < ends[1]
        assert ("a" in race.faster) is (ends[1] < 1.0)


def test_one_degree_of_freedom_shows_nothing() -> None:
    race = race_of([("a", -1.0), ("a", -1.001)])
    assert race.against_eager("a")[1] is None
    assert race.faster == set()
    race = race_of([("b", 0.1), ("b", 0.101), ("a", -1.0), ("a", -1.001)])
    assert race.against_eager("a")[1] is not None
    assert race.faster == {"a"}


def test_one_trial_far_ahead_is_taken_and_one_a_little_ahead_is_not() -> None:
    assert race_of([("a", -0.3)]).choice() == "a"
    assert race_of([("a", -0.035)]).choice() == "eager"
    assert race_of([("a", -0.05), ("a", -0.06)]).choice() == "a"
    assert race_of([("a", -0.5), ("a", 0.01)]).choice() == "eager"


def test_a_slow_eager_beside_it_makes_no_candidate_the_best() -> None:
    """Eager takes 1 or 3 ms by luck, which no candidate follows: "b" had it slow beside."""
    race = race_of([])
    for name, cost, eager in (("a", 0.50, 1.0), ("b", 0.55, 3.0), ("c", 0.53, 1.02), ("d", 0.52, 0.98)):
        race.note(name, math.log(cost / eager), math.log(eager))
    assert race.choice() == "a"
    assert race.against_eager("b")[0] == pytest.approx(0.55 / 3.0), "what a comparison of the trials says"


def test_a_slow_minute_that_both_follow_makes_no_candidate_worse() -> None:
    race = race_of([])
    for name, cost, eager in (("a", 1.0, 2.0), ("b", 0.55, 1.0), ("c", 0.62, 1.1), ("d", 0.55, 0.95)):
        race.note(name, math.log(cost / eager), math.log(eager))
    for _ in range(3):
        race.note("a", math.log(0.5), 0.0)
        race.note("b", math.log(0.56), 0.0)
    assert race.leader == "a"


def test_a_race_ends_with_the_best_and_says_so() -> None:
    cost = {"a": -0.3, "b": -0.1, "c": 0.4, "d": -0.295}
    race = race_of([])
    run(race, cost, 0.01, 400)
    assert race.is_decided
    assert race.choice() in ("a", "d")
    assert race.choice() in race.faster
    assert {"b", "c"} <= set(race.left)
    assert race.more_trials(race.leader) == 0


def test_equal_ones_end_with_eager() -> None:
    race = race_of([], ("a", "b"))
    run(race, {"a": 0.0, "b": 0.001}, 0.01, 2_000)
    assert race.is_decided
    assert race.choice() == "eager"


def test_eager_that_is_measured_itself_can_win_and_leave() -> None:
    cost = {"eager": 0.0, "a": 0.5, "b": 0.2}
    race = race_of([], ("a", "b"), eager_is_exact=False)
    assert run(race, cost, 0.02, 200)[0] == "eager"
    assert race.choice() == "eager"
    assert race.is_decided
    race = race_of([], ("a", "b"), eager_is_exact=False)
    run(race, {"eager": 0.0, "a": -0.5, "b": 0.2}, 0.02, 200)
    assert race.choice() == "a"
    assert race.left["eager"] is Left.WORSE


def test_eager_that_fails_is_not_the_choice() -> None:
    race = race_of([("a", 0.2), ("b", 0.3)], eager_is_exact=False)
    race.leave("eager", Left.FAILED)
    assert race.choice() == "a"


def test_what_more_trials_would_decide() -> None:
    def noted(cost: float) -> list[tuple[str, float]]:
        return [
            (name, each + mean) for each in (-0.06, 0.0, 0.06) for name, mean in (("a", -0.4), ("b", cost))
        ]

    near, far = (race_of(noted(cost), ("a", "b")).more_trials("b") for cost in (-0.39, -0.34))
    assert near is not None
    assert far is not None
    assert 3 <= far < near
    # Measured so often, it is told.
    race = race_of([pair for n in range(3 + far) for pair in noted(-0.34)[2 * (n % 3) :][:2]], ("a", "b"))
    assert race.more_trials("b") == 0
    assert race_of([("a", -0.2)]).more_trials("a") is None


def test_the_best_of_many_stays_and_equal_ones_are_promised_nothing() -> None:
    """Both are at most 5 % of races; of 200 no more than 8 % by luck once in 50."""
    generator = np.random.default_rng(7)
    left = promised = 0
    for n in range(200):
        cost = dict(zip(NAMES, generator.choice((0.0, 0.01, 0.05), 4) - 0.02, strict=True))
        best = min(NAMES, key=cost.__getitem__)
        race = race_of([])
        run(race, cost, 0.02, 25, seed=n)
        left += race.left.get(best) is Left.WORSE
        race = race_of([])
        run(race, dict.fromkeys(NAMES, 0.0), 0.02, 25, seed=1000 + n)
        promised += bool(race.faster)
    assert left <= 16
    assert promised <= 16
