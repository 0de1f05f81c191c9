"""Profiles, traces and sampling facts for tests, as a GPU and as a CPU give them."""

from __future__ import annotations

from typing import Any

from compilewatch.db.records.sampling_facts import Profile, ProfileEntry, ProfileSide, SamplingFacts, Trace


def make_profile(**overrides: Any) -> Profile:
    """A step on a GPU: 412 launches became 61, and the device is busy."""
    control = ProfileSide(
        step_ns=12_400_000,
        launches=412,
        kernels=412,
        operators=380,
        device_busy_fraction=0.61,
        launch_ns=2_100_000,
        python_ns=3_300_000,
        matrix_fraction=0.42,
    )
    names = ("nvjet_tst_128x256_64x4_1x2_h_bz_coopA_NNT", "triton_per_fused_native_layer_norm_7")
    own = ProfileSide(
        step_ns=8_100_000,
        launches=61,
        kernels=61,
        operators=25,
        device_busy_fraction=0.93,
        launch_ns=310_000,
        python_ns=900_000,
        matrix_fraction=0.66,
        top=[ProfileEntry(name=name, calls=12, self_ns=4_000_000 // (n + 1)) for n, name in enumerate(names)],
    )
    fields: dict[str, Any] = {
        "steps": 5,
        "own": own,
        "control": control,
        "flops": 1_400_000_000_000,
        "bytes": 3_000_000_000,
    }
    return Profile(**(fields | overrides))


def make_trace(**overrides: Any) -> Trace:
    fields: dict[str, Any] = {
        "directory": "traces/T1",
        "size_bytes": 2_100_000,
        "report": "traces/T1/report/index.html",
    }
    return Trace(**(fields | overrides))


def make_sampling(**overrides: Any) -> SamplingFacts:
    fields: dict[str, Any] = {
        "samples": 50,
        "max_samples": 200,
        "relative_interval": 0.02,
        "reached_interval": 0.011,
        "ended_by": "interval",
        "warmup_ended_by": "steady",
        "flush_l2": True,
        "block_ns": 100_000_000,
        "order": "ABBA",
        "garbage_collector": False,
    }
    return SamplingFacts(**(fields | overrides))
