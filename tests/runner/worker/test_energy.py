"""The window in which energy is counted holds whole steps, and nothing else runs in it."""

from __future__ import annotations

import pytest

from compilewatch.runner.worker.timed import WINDOW_NS, run_window


@pytest.mark.parametrize(
    ("latency_ns", "steps"), [(WINDOW_NS // 50, 50), (WINDOW_NS // 3 - 1, 4), (10 * WINDOW_NS, 3)]
)
def test_a_window_is_a_second_of_steps_and_three_at_least(latency_ns: int, steps: int) -> None:
    done: list[str] = []
    run_window(
        lambda: done.append("step"),
        lambda: done.append("synchronize"),
        lambda count: done.append(f"read {count}"),
        latency_ns,
    )
    assert done == [
        *("step", "synchronize", "read 0"),
        *("step",) * steps,
        *("synchronize", f"read {steps}"),
    ]
