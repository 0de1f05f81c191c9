"""Figures of a source's own: which way is good, by their names, and that a comparison judges them."""

from __future__ import annotations

import pytest

from compilewatch.db.columns.metrics import METRICS
from compilewatch.db.columns.source_metrics import judged_metrics, source_metric
from compilewatch.db.judge.compare.upgrade import compare_builds
from compilewatch.db.judge.results import Comparison, Row
from compilewatch.db.records.vocabulary import Metric, Verdict
from tests.db.judge.frames import sides
from tests.db.metrics.frames import trials_frame

CALM = (10.0, 10.05, 9.95, 10.02, 9.98)


@pytest.mark.parametrize(
    ("name", "title", "value", "written", "higher"),
    [
        ("median_ttft_ms", "TTFT", 55.0, "55.0 ms", False),
        ("p99_tpot_ms", "TPOT p99", 9.5, "9.50 ms", False),
        ("median_e2el_ms", "End-to-end latency", 1271.0, "1.27 s", False),
        ("p99_e2e_latency_ms", "End-to-end latency p99", 1200.0, "1.20 s", False),
        ("request_goodput", "Goodput", 3.5, "3.50 requests/s", True),
        ("output_throughput", "Output throughput", 1500.0, "1,500 tokens/s", True),
        ("avg_inference_latency(ms)", "avg_inference_latency(ms)", 12.5, "12.5 ms", False),
        ("token_per_sec", "token_per_sec", 80.0, "80.0 /s", True),
        ("Bandwidth (GB/s)", "Bandwidth (GB/s)", 80.0, "80.0 /s", True),
        ("peak_mem (MiB)", "peak_mem (MiB)", 2.0, "2.00 MiB", False),
        ("load_time", "load_time", 3.0, "3.00", False),
        ("Fwd Speedup (x)", "Fwd Speedup (x)", 1.5, "1.50x", True),
    ],
)
def test_a_name_tells_direction_and_unit(
    name: str, title: str, value: float, written: str, higher: bool
) -> None:
    column = source_metric(name)
    assert column is not None
    assert (column.name, column.write(value), column.higher_is_better) == (title, written, higher)
    assert METRICS[Metric(f"metrics.{name}")] is column


@pytest.mark.parametrize(
    "name",
    [
        *("std_ttft_ms", "mean_tpot_ms", "median_itl_ms", "max_e2el_ms", "total_input_tokens"),
        *("infer_gmacs", "param_count", "burstiness", "num_prompts", "total_time_s", "rank"),
    ],
)
def test_what_tells_no_direction_is_not_judged(name: str) -> None:
    assert source_metric(name) is None
    with pytest.raises(KeyError):
        METRICS[f"metrics.{name}"]


def test_the_load_that_is_offered_is_not_judged() -> None:
    served = {"output_throughput": 500.0, "request_throughput": 4.0, "median_ttft_ms": 55.0}
    assert set(judged_metrics(served)) == {f"metrics.{name}" for name in served}
    assert set(judged_metrics(served | {"request_rate": 4.0})) == {"metrics.median_ttft_ms"}


def _comparison(base: dict[str, float], head: dict[str, float]) -> Comparison:
    trials = trials_frame(sides(CALM, CALM))
    jitter = [1.0 + 0.002 * (number % 3) for number in range(len(trials))]
    of_side = [base if build == "old" else head for build in trials["build_id"]]
    for name in base:
        trials[name] = [each[name] * by for each, by in zip(of_side, jitter, strict=True)]
    return compare_builds(trials, "old", "new")


def _row(comparison: Comparison, metric: str) -> Row:
    (row,) = (row for row in comparison.rows if row.metric == metric)
    return row


def test_a_figure_that_gets_worse_fails_a_comparison_whose_latency_stands() -> None:
    ttft, rate = "metrics.median_ttft_ms", "metrics.token_per_sec"
    comparison = _comparison({ttft: 55.0, rate: 80.0}, {ttft: 110.0, rate: 160.0})
    assert _row(comparison, Metric.LATENCY).verdict is not Verdict.REGRESSED
    row = _row(comparison, ttft)
    assert (row.verdict, row.unit, row.moved) == (Verdict.REGRESSED, "ms", "slower")
    assert row.change == pytest.approx(1.0, rel=0.01)
    assert _row(comparison, rate).verdict is Verdict.IMPROVED
    assert comparison.verdict is Verdict.REGRESSED
    assert comparison.tally.slower_by == {Metric(ttft): 1}
    assert "Other metrics: TTFT 1 worse; token_per_sec 1 better." in comparison.sentences


def test_a_frozen_comparison_is_read_back_with_such_a_figure() -> None:
    comparison = _comparison({"metrics.token_per_sec": 80.0}, {"metrics.token_per_sec": 40.0})
    again = Comparison.model_validate_json(comparison.model_dump_json())
    assert again == comparison
    assert again.verdict is Verdict.REGRESSED
