"""Figures of a source's own: which way is good, by their names, and that a comparison judges them."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from compilewatch.db.columns.metrics import METRICS
from compilewatch.db.columns.source_metrics import judged_metrics, source_metric
from compilewatch.db.judge.compare.upgrade import compare_builds
from compilewatch.db.judge.policy import Override
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
        ("tok_s", "tok_s", 80.0, "80.0 /s", True),
        ("throughput_tok_s", "throughput_tok_s", 80.0, "80.0 /s", True),
        ("p50 latency [ms]", "p50 latency [ms]", 12.5, "12.5 ms", False),
        ("inverse_throughput_us", "inverse_throughput_us", 12.5, "12.5 µs", False),
        ("throughput (ms/token)", "throughput (ms/token)", 12.5, "12.5 ms", False),
        ("sec_per_iter", "sec_per_iter", 1.5, "1.50 s", False),
        ("Bandwidth (GB/s)", "Bandwidth (GB/s)", 80.0, "80.0 /s", True),
        ("peak_mem (MiB)", "peak_mem (MiB)", 2.0, "2.00 MiB", False),
        ("load_time", "load_time", 3.0, "3.00", False),
        ("Fwd Speedup (x)", "Fwd Speedup (x)", 1.5, "1.50x", True),
        ("failed", "failed", 2.0, "2", False),
        ("num_failed_requests", "num_failed_requests", 0.5, "0.500", False),
        ("completed", "completed", 200.0, "200", True),
        ("compile_time_instruction_count", "compile_time_instruction_count", 3e9, "3,000,000,000", False),
        ("cudagraph_skips", "cudagraph_skips", 1234.0, "1,234", False),
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
        *("acc_stderr", "standard_error", "max_abs_error", "skip_tests"),
        *("instructions_per_cycle", "instruction_count_max", "throughput (tokens/ms)"),
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


# A figure that is 0 on a side: there is no ratio to it.

GOODPUT, FAILED, SKIPS = "metrics.request_goodput", "metrics.failed", "metrics.cudagraph_skips"
MEASURED = (3.5, 3.52, 3.49, 3.51)


def _rows(metric: str, base: Sequence[float], head: Sequence[float]) -> list[Row]:
    """Those of `metric` where the trials of base and head have these values, the sides taking turns."""
    trials = trials_frame(sides(CALM[: len(base)], CALM[: len(head)]))
    values = {"old": iter(base), "new": iter(head)}
    trials[metric] = [next(values[build]) for build in trials["build_id"]]
    return [row for row in compare_builds(trials, "old", "new").rows if row.metric == metric]


@pytest.mark.parametrize(
    ("metric", "base", "head", "verdict"),
    [
        (GOODPUT, MEASURED, (0.0,) * 4, Verdict.REGRESSED),
        (GOODPUT, (0.0,) * 4, MEASURED, Verdict.IMPROVED),
        (FAILED, (0.0,) * 3, (5.0, 6.0, 5.0), Verdict.REGRESSED),
        (FAILED, (5.0, 6.0, 5.0), (0.0,) * 3, Verdict.IMPROVED),
        ("metrics.completed", (200.0,) * 3, (0.0,) * 3, Verdict.REGRESSED),
        ("metrics.Fwd Speedup (x)", (1.5, 1.51, 1.5), (0.0,) * 3, Verdict.REGRESSED),
        # One trial of a side is never a verdict, and what varies by as much none either.
        (FAILED, (0.0,), (5.0,), Verdict.INCONCLUSIVE),
        (FAILED, (0.0, 1.0, 0.0), (0.0, 0.0, 1.0), Verdict.INCONCLUSIVE),
        (FAILED, (0.0, 0.0, 0.0), (0.0, 1.0, 0.0), Verdict.INCONCLUSIVE),
        # What is counted without noise is compared exactly.
        (SKIPS, (0.0,), (5.0,), Verdict.REGRESSED),
        (SKIPS, (5.0,), (0.0,), Verdict.IMPROVED),
        (SKIPS, (2.0,), (4.0,), Verdict.REGRESSED),
        (SKIPS, (0.0, 0.0), (0.0, 0.0), Verdict.UNCHANGED),
    ],
)
def test_a_figure_that_falls_to_zero_or_rises_from_it_is_judged(
    metric: str, base: tuple[float, ...], head: tuple[float, ...], verdict: Verdict
) -> None:
    (row,) = _rows(metric, base, head)
    assert (row.verdict, row.change, row.trials) == (verdict, None, (len(base), len(head)))
    assert row.base == pytest.approx(sum(base) / len(base))
    assert row.head == pytest.approx(sum(head) / len(head))


def test_a_sentence_stands_for_the_percentage() -> None:
    (fell,) = _rows(GOODPUT, MEASURED, (0.0,) * 4)
    assert fell.reason == "Goodput fell from 3.50 requests/s to 0 requests/s, beyond what its trials vary by."
    (varies,) = _rows(FAILED, (0.0, 1.0, 0.0, 0.0), (0.0, 0.0, 1.0, 1.0))
    assert varies.reason == "Cannot tell: failed from 0.250 to 0.500, and its trials vary by as much."
    (single,) = _rows(FAILED, (0.0,), (5.0,))
    assert single.reason == "1 trial on the smaller side is never a verdict; 3 a side are needed."
    (counted,) = _rows(SKIPS, (0.0,), (5.0,))
    assert counted.reason == "0 to 5, compared exactly."


def test_one_trial_with_zero_is_not_left_out_of_the_value() -> None:
    (row,) = _rows(GOODPUT, (3.5, 3.5, 3.5, 0.0), MEASURED)
    assert row.base == pytest.approx(2.625)  # by hand: 10.5 / 4
    assert row.verdict is Verdict.INCONCLUSIVE


def test_what_has_no_logarithm_is_unchanged_where_trials_show_it() -> None:
    (row,) = _rows("metrics.balance_per_s", (-5.0,) * 3, (-5.0,) * 3)
    assert (row.verdict, row.reason) == (
        Verdict.UNCHANGED,
        "Shown to differ by less than 5.00 % of the largest value.",
    )


@pytest.mark.parametrize("values", [(9.5, 0.0), (0.0, 9.5)])
def test_a_time_of_zero_was_not_measured_and_praises_nothing(values: tuple[float, float]) -> None:
    (row,) = _rows("metrics.median_tpot_ms", (values[0],) * 3, (values[1],) * 3)
    assert (row.base, row.head, row.verdict) == (*values, Verdict.INCONCLUSIVE)
    assert row.reason.endswith(": 0 was not measured.")
    assert not row.suspected


def test_what_is_zero_throughout_has_no_row() -> None:
    assert _rows(GOODPUT, (0.0,) * 3, (0.0,) * 3) == []


def test_noise_without_a_ratio_leaves_the_other_cases_their_verdicts() -> None:
    """A case at 0 is no news of those that have ratios, nor is its noise theirs."""
    rows = [row for name in "abcd" for row in sides(CALM, CALM, workload=name)]
    trials = trials_frame(rows)
    steady = [80.0 * (1.0 + 0.002 * (number % 3)) for number in range(len(trials))]
    fallen = (trials["workload"] == "a") & (trials["build_id"] == "new")
    trials[GOODPUT] = [0.0 if gone else value for gone, value in zip(fallen, steady, strict=True)]
    comparison = compare_builds(trials, "old", "new")
    verdicts = {row.workload: row.verdict for row in comparison.rows if row.metric == GOODPUT}
    assert verdicts == {"a": Verdict.REGRESSED} | dict.fromkeys("bcd", Verdict.UNCHANGED)
    assert comparison.tally.slower_by == {Metric(GOODPUT): 1}


def test_a_threshold_for_what_is_counted_exactly_is_refused() -> None:
    with pytest.raises(ValueError, match="compared exactly"):
        Override(metric=Metric(SKIPS), minimum_effect=0.1)
    assert Override(metric=Metric(FAILED), minimum_effect=0.1).minimum_effect == 0.1
