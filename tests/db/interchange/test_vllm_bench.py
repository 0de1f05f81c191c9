"""`vllm bench serve`: a case for each load, and what a server owes under it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.db.interchange.reading import read_told


def served(rate: float | str, tpot_ms: float, **more: Any) -> dict[str, Any]:
    """A result in the tool's shape; 200 prompts of 1,024 tokens are answered with 128 each."""
    return {
        "date": "20260901-010000",
        "model_id": "acme/Llama-8B",
        "num_prompts": 200,
        "request_rate": rate,
        "max_concurrency": None,
        "completed": 200,
        "total_input_tokens": 204_800,
        "total_output_tokens": 25_600,
        "request_throughput": 4.0,
        "output_throughput": 500.0,
        "median_ttft_ms": 55.0,
        "median_tpot_ms": tpot_ms,
        **more,
    }


def write(folder: Path, *results: dict[str, Any]) -> Path:
    path = folder / "results.json"
    path.write_text("\n".join(map(json.dumps, results)), encoding="utf-8")
    return path


def test_under_a_fixed_rate_the_latency_is_the_time_per_output_token(tmp_path: Path) -> None:
    (before,) = read_told(write(tmp_path, served(4.0, 9.5)))
    (after,) = read_told(write(tmp_path, served(4.0, 19.0)))
    assert before.workload == after.workload
    assert before.summary is not None
    assert after.summary is not None
    assert (before.summary.latency_ns, after.summary.latency_ns) == (9_500_000, 19_000_000)
    assert before.summary.metrics["median_ttft_ms"] == 55.0


def test_at_an_unlimited_rate_it_is_the_time_per_token_of_all_requests(tmp_path: Path) -> None:
    (trial,) = read_told(write(tmp_path, served("inf", 44.0, output_throughput=4_000.0)))
    assert trial.summary is not None
    assert trial.summary.latency_ns == 250_000


@pytest.mark.parametrize(
    "other",
    [
        {"request_rate": 16.0},
        {"request_rate": "inf"},
        {"max_concurrency": 8},
        {"total_input_tokens": 1_638_400},
        {"total_output_tokens": 51_200},
    ],
)
def test_another_load_is_another_case(tmp_path: Path, other: dict[str, Any]) -> None:
    first, second = read_told(write(tmp_path, served(4.0, 9.5), served(4.0, 9.5) | other))
    assert first.workload != second.workload
    assert first.workload.shape == {"num_prompts": 200, "input_len": 1_024, "output_len": 128}


def test_appended_results_are_as_many_trials(tmp_path: Path) -> None:
    trials = read_told(write(tmp_path, *(served(float(rate), 8.0) for rate in (1, 4, 16))))
    assert [trial.workload.name for trial in trials] == [
        f"acme/Llama-8B serve, rate {rate}/s" for rate in (1, 4, 16)
    ]
