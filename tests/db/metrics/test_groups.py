"""Grouped arithmetic against numpy and pandas, group by group."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compilewatch.db.metrics.groups import Groups, equal_to, flags, floats, numbered

NAN = float("nan")
# groups of three, none, one and two values, the last of them with one missing
GROUPS = Groups(np.array([0, 3, 0, 2, 0, 3]), 4)
VALUES = np.array([5.0, 8.0, 1.0, 7.0, 2.0, NAN])

_rows = st.lists(
    st.tuples(st.integers(0, 4), st.none() | st.floats(-1e6, 1e6)),
    min_size=1,
    max_size=30,
)


def test_by_hand() -> None:
    np.testing.assert_allclose(GROUPS.mean(VALUES), [10 ** (1 / 3), NAN, 7.0, 8.0])
    np.testing.assert_allclose(GROUPS.mean(VALUES - 3), [-1 / 3, NAN, 4.0, 5.0])
    np.testing.assert_array_equal(GROUPS.max(VALUES), [5.0, NAN, 7.0, 8.0])
    np.testing.assert_array_equal(GROUPS.sum(np.ones(6)), [3.0, 0.0, 1.0, 2.0])
    assert GROUPS.present(VALUES).n.tolist() == [3, 0, 1, 1]


@given(st.floats(1e-9, 1e15), st.integers(1, 30))
def test_the_mean_of_equal_values_is_exactly_theirs(value: float, n: int) -> None:
    assert Groups(np.zeros(n, np.int64), 1).mean(np.full(n, value)).tolist() == [value]


@pytest.mark.parametrize("fraction", [0.0, 0.1, 0.5, 0.9, 1.0])
@given(rows=_rows)
def test_quantiles_are_those_of_numpy(fraction: float, rows: list[tuple[int, float | None]]) -> None:
    codes = np.array([code for code, _ in rows])
    values = np.array([NAN if value is None else value for _, value in rows])
    found = Groups(codes, 5).present(values).quantile(fraction)
    for group in range(5):
        mine = values[(codes == group) & ~np.isnan(values)]
        expected = np.quantile(mine, fraction) if len(mine) else NAN
        assert found[group] == pytest.approx(expected, rel=1e-12, abs=1e-9, nan_ok=True)


def test_groups_are_numbered_in_the_order_of_their_keys_and_missing_ones_are_equal() -> None:
    frame = pd.DataFrame({"a": ["y", "x", None, "x", None], "b": [1, 2, 1, 1, 1]})
    groups = Groups.by(frame, ["a", "b"])
    assert (groups.codes.tolist(), groups.count) == ([2, 1, 3, 0, 3], 4)
    empty = Groups.by(frame.iloc[:0], ["a"])
    assert (len(empty.codes), empty.count) == (0, 0)


def test_keys_with_more_combinations_than_can_be_numbered() -> None:
    rng = np.random.default_rng(0)
    keys = [f"k{number}" for number in range(8)]
    frame = pd.DataFrame({key: rng.integers(0, 10**9, 1000) for key in keys})
    frame = pd.concat([frame, frame.sample(frac=1.0, random_state=0)], ignore_index=True)
    groups = Groups.by(frame, keys)
    expected = frame.groupby(keys, sort=True).ngroup()
    assert (groups.codes.tolist(), groups.count) == (expected.tolist(), 1000)


@given(st.lists(st.integers(0, 20) | st.integers(0, 10**15), max_size=30))
def test_keys_are_numbered_as_numpy_does(keys: list[int]) -> None:
    given_keys = np.array(keys, dtype=np.int64)
    distinct, numbers = numbered(given_keys)
    expected, inverse = np.unique(given_keys, return_inverse=True)
    assert (distinct.tolist(), numbers.tolist()) == (expected.tolist(), inverse.tolist())
    assert distinct.dtype == numbers.dtype == np.int64


def test_groups_are_renumbered_and_equal_ones_stay_in_order() -> None:
    groups = GROUPS.renumbered(np.array([2, 1, 2, 0]))
    assert (groups.codes.tolist(), groups.count) == ([2, 0, 2, 3, 2, 0], 4)


def test_the_last_row_is_that_of_the_most_important_key() -> None:
    groups = Groups(np.array([1, 0, 1, 0, 1]), 2)
    first, second = np.array([3, 5, 9, 5, 9]), np.array([9, 2, 1, 1, 2])
    assert groups.last_row(first, second).tolist() == [1, 4]
    assert groups.last_row(second, first).tolist() == [1, 0]


def test_columns_with_missing_values_become_plain_arrays() -> None:
    numbers = floats(pd.Series([1, None, 3], dtype="Int64"))
    assert numbers.dtype == np.float64
    np.testing.assert_array_equal(numbers, [1.0, NAN, 3.0])
    assert flags(pd.Series([True, None, False], dtype="object")).tolist() == [True, False, False]


@pytest.mark.parametrize("dtype", ["str", "object"])
def test_a_missing_text_is_no_word(dtype: str) -> None:
    column = pd.Series(["ok", None, "failed"], dtype=dtype, index=[5, 5, 1])
    assert equal_to(column, "failed").tolist() == [False, False, True]
