"""Sweeps among cases: which sizes belong together, and the eager of each."""

from __future__ import annotations

from typing import Any

import pytest

from compilewatch.db.metrics.cases import summarize_cases
from compilewatch.db.metrics.throughput import Sweep, sweeps
from tests.db.metrics.frames import trial, trials_frame


def found(*rows: dict[str, Any]) -> list[Sweep]:
    return sweeps(summarize_cases(trials_frame(rows)))


def ranker(batch: int, features: int | None = None, length: int | None = None, **fields: Any) -> dict:
    shape = {"features": features, "length": length}
    known = {name: value for name, value in shape.items() if value is not None}
    name = "-".join(["ranker", f"b{batch}", *(f"{name[0]}{value}" for name, value in known.items())])
    return trial(name, batch_size=batch, shape=known, control_latency_ns=2e6, **fields)


def test_a_sweep_is_one_workload_over_one_size() -> None:
    rows = [
        trial(
            f"ranker-b{batch}",
            strategy,
            batch_size=batch,
            items_per_iteration=float(batch),
            item="requests",
            latency_ns=(2.0 if strategy == "eager" else 1.0) * 1e6 * batch**0.5,
            control_latency_ns=None if strategy == "eager" else 2e6 * batch**0.5,
        )
        for batch in (1, 4, 16)
        for strategy in ("eager", "default")
    ]
    rows.append(trial("other", "default", latency_ns=1e6, control_latency_ns=2e6))
    (sweep,) = found(*rows)
    assert (sweep.workload, sweep.size, sweep.second) == ("ranker", "batch_size", "")
    assert sweep.held == {"sequence_length": 128}
    assert (sweep.sizes, sweep.item) == ((1, 4, 16), "request")
    rate = {(case["strategy"], case["size"]): case["throughput_per_s"] for case in sweep.cases}
    assert rate["default", 16] == pytest.approx(16 / 4e-3)
    assert rate["eager", 16] == pytest.approx(16 / 8e-3)
    assert len(rate) == len(sweep.cases) == 6


def test_two_sizes_are_one_sweep_over_the_batch_size_with_the_other_second() -> None:
    (sweep,) = found(*(ranker(batch, features) for features in (64, 256, 512) for batch in (1, 8)))
    assert (sweep.size, sweep.second, sweep.sizes) == ("batch_size", "features", (1, 8))
    places = {(case["second"], case["size"]) for case in sweep.cases}
    assert places == {(features, batch) for features in (64, 256, 512) for batch in (1, 8)}


def test_of_three_sizes_the_third_is_held_and_what_is_the_same_everywhere_too() -> None:
    rows = [ranker(b, f, n) for b in (1, 8) for f in (64, 256, 512) for n in (16, 32)]
    one, other = found(*rows)
    assert [(each.second, each.held) for each in (one, other)] == [
        ("features", {"length": 16}),
        ("features", {"length": 32}),
    ]
    (constant,) = found(*(ranker(1, features, 16) for features in (64, 256)))
    assert (constant.size, constant.held) == ("features", {"batch_size": 1, "length": 16})


def test_what_differs_in_two_sizes_at_once_scales_over_neither() -> None:
    assert found(ranker(1, 64), ranker(8, 256)) == []


def test_an_edited_workload_has_one_case_a_size() -> None:
    rows = [
        ranker(batch) | {"workload_id": f"{batch}-{version}"}
        for version in ("old", "new")
        for batch in (1, 8)
    ]
    (sweep,) = found(*rows)
    assert len([case for case in sweep.cases if case["strategy"] == "default"]) == 2


def test_a_sweep_over_batch_and_dtype_is_one_of_each_dtype() -> None:
    rows = [
        trial(f"ranker-b{batch}-{dtype}", batch_size=batch, dtype=dtype, control_latency_ns=2e6)
        for batch in (1, 32)
        for dtype in ("bfloat16", "float32")
    ]
    assert [(sweep.workload, sweep.size) for sweep in found(*rows)] == [
        ("ranker-bfloat16", "batch_size"),
        ("ranker-float32", "batch_size"),
    ]


def test_ranks_are_a_size_too() -> None:
    rows = [
        trial(f"ddp-r{ranks}", ranks=ranks, items_per_iteration=8.0 * ranks, latency_ns=1e6)
        for ranks in (1, 2)
    ]
    (sweep,) = found(*rows)
    assert (sweep.workload, sweep.size, sweep.sizes) == ("ddp", "ranks", (1, 2))
    assert sweep.held == {"batch_size": 8, "sequence_length": 128}


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
    (sweep,) = found(*rows)
    assert sweep.size == "sequence_length"
    eager = [case for case in sweep.cases if case["strategy"] == "eager"]
    assert {case["size"]: case["peak_bytes"] for case in eager} == {64: 64, 128: 128}
    assert {case["speedup"] for case in eager} == {None}
