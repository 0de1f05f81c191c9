"""The values that a comparison asks for are those of a whole summary."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from pandas.testing import assert_frame_equal

from compilewatch.db.metrics.cases import VALUE_COLUMNS, case_values, summarize_cases
from tests.db.metrics.frames import trial, trials_frame


def anything(random: Random) -> dict[str, Any]:
    """A trial that may have failed, be suspect, lack numbers or have senseless ones."""

    def amount() -> float | None:
        return random.choice([None, 0.0, random.uniform(0.5, 1e3), random.uniform(0.5, 1e12)])

    return trial(
        workload=random.choice(["a", "b", "c"]),
        strategy=random.choice(["eager", "default"]),
        torch=random.choice(["2.12.0", "2.13.0"]),
        run_id=random.choice(["R1", "R2"]),
        status=random.choice(["ok", "ok", "ok", "failed"]),
        failure_kind=random.choice([None, "crash", "timeout"]),
        suspect=random.choice([None, False, False, True]),
        numerics_status=random.choice([None, "pass", "fail", "not_checked"]),
        latency_ns=amount(),
        control_latency_ns=amount(),
        trial_compile_cost_ns=random.choice([None, random.uniform(-1e9, 1e12)]),
        peak_bytes=random.choice([None, 0, random.randint(1, 2**40)]),
        graphs=random.choice([None, 0, 3]),
    )


@pytest.mark.parametrize("trials", [0, 1, 5, 40, 200])
@pytest.mark.parametrize(
    "seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 8))]
)
def test_values_are_those_of_the_summary(trials: int, seed: int) -> None:
    random = Random(seed)
    frame = trials_frame([anything(random) for _ in range(trials)])
    wanted = summarize_cases(frame)[list(VALUE_COLUMNS)]
    assert_frame_equal(case_values(frame), wanted, check_exact=True)
