"""Subjects cannot be mixed."""

from __future__ import annotations

import operator
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

from db.errors import UnitError
from db.metrics.quantities import Subject, nanoseconds, require_one
from tests.db.metrics.frames import trial, trials_frame

BERT = Subject("box", "bert")


@pytest.mark.parametrize("operation", [operator.add, operator.sub])
@pytest.mark.parametrize(
    "other",
    [
        nanoseconds(5, Subject("box", "resnet")),
        nanoseconds(5, Subject("laptop", "bert")),
        5,
        5.0,
    ],
)
def test_unlike_things_never_meet(operation: Callable[[Any, Any], Any], other: object) -> None:
    with pytest.raises(UnitError):
        operation(nanoseconds(10, BERT), other)


def test_like_things_add_exactly() -> None:
    third = nanoseconds(Fraction(1, 3), BERT)
    assert third + third + third == nanoseconds(1, BERT)
    assert 3 * third - nanoseconds(1) == nanoseconds(0, BERT)


def test_a_product_of_quantities_is_refused() -> None:
    with pytest.raises(UnitError):
        nanoseconds(2) * nanoseconds(3)  # type: ignore[operator]


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_what_is_not_finite_is_no_quantity(value: float) -> None:
    with pytest.raises(UnitError):
        nanoseconds(value)


def test_a_frame_of_two_machines_is_refused_where_one_is_needed() -> None:
    frame = trials_frame([trial(machine="box"), trial(machine="laptop")])
    with pytest.raises(UnitError, match="m-box, m-laptop"):
        require_one(frame, ("machine_id",), "This")
    require_one(frame, ("workload_id",), "This")
    require_one(frame.iloc[:0], ("machine_id",), "This")
