"""The search that halves releases, with a change at every place it can have."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compilewatch.db.judge.bisection import Bracket, ReleasePlace, has_moved, most_builds, place_of, search
from compilewatch.db.judge.results import CaseKey, Row
from compilewatch.db.records.vocabulary import Design, Metric, Verdict

CASE = CaseKey(workload="mlp", strategy="default", workload_id="w", strategy_id="s")


def row(change=None, interval=None, metric=Metric.LATENCY, verdict=Verdict.REGRESSED, base=1.0, head=2.0):
    return Row(
        case=CASE,
        metric=metric,
        unit="ns",
        base=base,
        head=head,
        change=change,
        interval=interval,
        verdict=verdict,
        trials=(3, 3),
        design=Design.INTERLEAVED,
        reason="",
    )


class Releases:
    """Numbered releases, changed from `first_after` on; `broken` ones cannot be measured."""

    def __init__(self, number, first_after, broken=()):
        self.names = [str(each) for each in range(number)]
        self.first_after, self.broken = first_after, broken
        self.measured = []

    def place(self, name):
        self.measured.append(name)
        if int(name) in self.broken:
            return ReleasePlace.SKIPPED
        return ReleasePlace.AFTER if int(name) >= self.first_after else ReleasePlace.BEFORE


@pytest.mark.parametrize("number", range(2, 40))
def test_every_change_is_found_in_as_few_builds_as_there_can_be(number):
    for first_after in range(1, number):
        releases = Releases(number, first_after)
        assert search(releases.names, releases.place) == Bracket(str(first_after - 1), str(first_after), ())
        assert 2 + len(releases.measured) <= most_builds(number) <= 2 + math.ceil(math.log2(number))
        assert len(set(releases.measured)) == len(releases.measured)


@given(st.data())
def test_releases_that_cannot_be_measured_are_named_and_not_guessed(data):
    number = data.draw(st.integers(3, 20))
    first_after = data.draw(st.integers(1, number - 1))
    broken = data.draw(st.sets(st.integers(1, number - 2)))
    releases = Releases(number, first_after, broken)
    found = search(releases.names, releases.place)
    assert int(found.last_before) < first_after <= int(found.first_after)
    assert {int(each) for each in found.between} <= broken
    assert len(found.between) == int(found.first_after) - int(found.last_before) - 1


def test_what_is_known_goes_first_between_two_that_are_as_near():
    releases = Releases(4, 3)
    search(releases.names, releases.place, known={"2"})
    assert releases.measured == ["2"]


@pytest.mark.parametrize(
    ("interval", "place"),
    [
        ((1.2, 1.8), ReleasePlace.AFTER),
        ((-0.05, 0.06), ReleasePlace.BEFORE),
        # Half of the way from 1 to 2.67 on a log scale is 1.634.
        ((0.63, 0.70), ReleasePlace.OPEN),
        ((0.64, 0.70), ReleasePlace.AFTER),
        ((0.50, 0.63), ReleasePlace.BEFORE),
        (None, ReleasePlace.OPEN),
    ],
)
def test_the_interval_places_a_release(interval, place):
    whole = row(1.67, (1.46, 1.91))
    assert place_of(row(0.5, interval), whole) is place


def test_a_change_for_the_better_is_placed_too():
    whole = row(-0.62, (-0.66, -0.56), verdict=Verdict.IMPROVED)
    assert place_of(row(-0.6, (-0.65, -0.5)), whole) is ReleasePlace.AFTER
    assert place_of(row(0.01, (-0.05, 0.08)), whole) is ReleasePlace.BEFORE


def test_counts_are_placed_by_their_value():
    def breaks(head):
        return row(metric=Metric.GRAPH_BREAKS, base=0.0, head=head)

    whole = breaks(2.0)
    places = [place_of(breaks(head), whole) for head in (0.0, 2.0, 1.0)]
    assert places == [ReleasePlace.BEFORE, ReleasePlace.AFTER, ReleasePlace.OPEN]


def test_only_what_moved_can_be_searched_for():
    assert has_moved(row(0.5, (0.4, 0.6)))
    assert not has_moved(row(0.5, (0.4, 0.6), verdict=Verdict.INCONCLUSIVE))
    assert not has_moved(row(None, None))
    assert has_moved(row(metric=Metric.NUMERICS, base="pass", head="fail"))
