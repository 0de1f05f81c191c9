"""Sweeps among cases: which sizes belong together, and the eager of each."""

from __future__ import annotations

import pytest

from compilewatch.db.metrics.cases import summarize_cases
from compilewatch.db.metrics.scaling import sweeps
from tests.db.metrics.frames import trial, trials_frame


def test_a_sweep_is_one_workload_over_one_size() -> None:
    rows = [
        trial(
            f"ranker-b{batch}",
            strategy,
            batch_size=batch,
            items_per_iteration=float(batch),
            latency_ns=(2.0 if strategy == "eager" else 1.0) * 1e6 * batch**0.5,
            control_latency_ns=None if strategy == "eager" else 2e6 * batch**0.5,
        )
        for batch in (1, 4, 16)
        for strategy in ("eager", "default")
    ]
    rows.append(trial("other", "default", latency_ns=1e6, control_latency_ns=2e6))
    (sweep,) = sweeps(summarize_cases(trials_frame(rows)))
    assert (sweep.workload, sweep.size) == ("ranker", "batch_size")
    rate = {(row.strategy, row.size): row.throughput_per_s for row in sweep.points.itertuples()}
    assert rate["default", 16] == pytest.approx(16 / 4e-3)
    assert rate["eager", 16] == pytest.approx(16 / 8e-3)
    assert len(rate) == 6


def test_a_sweep_over_batch_and_dtype_is_one_of_each_dtype() -> None:
    rows = [
        trial(f"ranker-b{batch}-{dtype}", batch_size=batch, dtype=dtype, control_latency_ns=2e6)
        for batch in (1, 32)
        for dtype in ("bfloat16", "float32")
    ]
    found = sweeps(summarize_cases(trials_frame(rows)))
    assert [(sweep.workload, sweep.size) for sweep in found] == [
        ("ranker-bfloat16", "batch_size"),
        ("ranker-float32", "batch_size"),
    ]


def test_eager_beside_a_strategy_stands_where_it_has_no_process_of_its_own() -> None:
    rows = [
        trial(
            f"ranker-s{length}",
            shape={"sequence_length": length},
            latency_ns=1e6,
            control_latency_ns=2e6,
            peak_bytes=length,
            control_peak_bytes=length,
        )
        for length in (64, 128)
    ]
    (sweep,) = sweeps(summarize_cases(trials_frame(rows)))
    assert sweep.size == "sequence_length"
    eager = sweep.points[sweep.points["strategy"] == "eager"]
    assert eager["peak_bytes"].tolist() == [64, 128]
    assert eager["speedup"].isna().all()
