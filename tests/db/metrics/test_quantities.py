"""What is not finite or mixes machines goes into no formula."""

from __future__ import annotations

import pytest

from compilewatch.db.errors import UnitError
from compilewatch.db.metrics.eligibility import nanoseconds, require_one
from tests.db.metrics.frames import trial, trials_frame


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
