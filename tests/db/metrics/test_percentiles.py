"""Percentiles and spread of a trial and of a case, by hand."""

from __future__ import annotations

import statistics

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compilewatch.db.columns.metrics import METRICS
from compilewatch.db.errors import UnitError
from compilewatch.db.judge.compare.upgrade import compare_builds
from compilewatch.db.judge.history.series import judge_series
from compilewatch.db.metrics.cases import summarize_cases
from compilewatch.db.metrics.trend import series_points
from compilewatch.db.metrics.trial_times import SampleSummary, summarize_samples
from compilewatch.db.records.vocabulary import Metric, Verdict
from tests.db.metrics.frames import START, trial, trials_frame


def test_a_p99_of_fewer_than_100_steps_is_not_shown() -> None:
    few = [trial(latency_ns=100.0, latency_p99_ns=180.0, samples=99) for _ in range(3)]
    (case,) = summarize_cases(trials_frame(few)).to_dict("records")
    assert pd.isna(case["latency_p99_ns"])
    enough = [trial(latency_ns=100.0, latency_p99_ns=180.0, samples=100 + n) for n in range(3)]
    (case,) = summarize_cases(trials_frame([*few[:1], *enough])).to_dict("records")
    assert case["latency_p99_ns"] == pytest.approx(180.0)
    assert case["samples"] == 99


def test_spread_within_and_between_processes_are_two_figures() -> None:
    medians = [100.0, 104.0, 90.0]
    rows = [trial(latency_ns=median, latency_sd_ns=2.0, samples=30) for median in medians]
    (case,) = summarize_cases(trials_frame(rows)).to_dict("records")
    assert case["latency_sd_ns"] == pytest.approx(2.0)
    assert case["latency_between_sd_ns"] == pytest.approx(statistics.stdev(medians))
    (alone,) = summarize_cases(trials_frame(rows[:1])).to_dict("records")
    assert pd.isna(alone["latency_between_sd_ns"])


def _two_builds(p95: dict[str, float]) -> pd.DataFrame:
    rows = [
        trial(
            torch=torch,
            run_id="R",
            latency_ns=100.0 + n % 2,
            latency_p95_ns=p95[torch] + n % 2,
            control_latency_ns=200.0 + n % 2,
            samples=200,
        )
        for n in range(8)
        for torch in p95
    ]
    return trials_frame(rows)


def test_a_percentile_has_a_row_where_asked_and_decides_nothing() -> None:
    trials = _two_builds({"2.12.0": 120.0, "2.13.0": 180.0})
    plain = compare_builds(trials, "b-2.12.0", "b-2.13.0")
    asked = compare_builds(trials, "b-2.12.0", "b-2.13.0", asked=(Metric.LATENCY_P95, Metric.THROUGHPUT))
    assert plain.asked == ()
    said = tuple(each for each in asked.sentences if not each.startswith("Other metrics: p95"))
    assert asked.model_copy(update={"asked": (), "sentences": said}) == plain
    p95, rate = (
        next(row for row in asked.asked if row.metric is metric)
        for metric in (Metric.LATENCY_P95, Metric.THROUGHPUT)
    )
    assert p95.verdict is Verdict.REGRESSED
    assert p95.change == pytest.approx(0.5, abs=0.02)
    latency = next(row for row in plain.rows if row.metric is Metric.LATENCY)
    assert (rate.verdict, rate.q_value) == (latency.verdict, latency.q_value)


@pytest.mark.parametrize("metric", [Metric.GRAPH_BREAKS, Metric.RECOMPILES, Metric.CAPTURED_OPERATIONS])
def test_a_jump_of_a_count_is_an_event_of_its_history(metric: Metric) -> None:
    column = METRICS[metric].column
    rows = [trial(run_id=f"R{run}", latency_ns=100.0) | {column: 0 if run < 3 else 4} for run in range(6)]
    history = judge_series(series_points(trials_frame(rows)), metric)
    (event,) = history.events
    assert (event.index, event.before, event.after) == (3, 0, 4)
    assert history.drift is None


def test_percentiles_have_a_history() -> None:
    rows = [
        trial(
            run_id=f"R{run:02d}",
            started_at=START + pd.Timedelta(days=run),
            latency_ns=100.0,
            latency_p95_ns=(120.0 if run < 12 else 160.0) + run % 3,
            samples=50,
        )
        for run in range(24)
        for _ in range(3)
    ]
    events = judge_series(series_points(trials_frame(rows)), Metric.LATENCY_P95).events
    assert [event.index for event in events] == [12]


def test_quantiles_are_interpolated_linearly() -> None:
    # 21 samples 0, 10 ... 200: the q quantile lies at position 20 q
    found = summarize_samples(list(range(200, -10, -10)))
    assert (found.n, found.latency_ns, found.p05_ns, found.p95_ns) == (21, 100, 10, 190)
    assert found.p99_ns == pytest.approx(198)


def test_one_sample_is_all_its_quantiles_and_none_is_none() -> None:
    assert summarize_samples([8_123_456]) == SampleSummary(1, 8_123_456, 8_123_456, 8_123_456, 8_123_456)
    assert summarize_samples([8_123_456, 8_130_001]).latency_ns == 8_126_728.5  # type: ignore[union-attr]
    assert summarize_samples([]) is None


def test_a_negative_sample_is_refused() -> None:
    with pytest.raises(UnitError):
        summarize_samples([5, -1])


@given(st.lists(st.integers(0, 2**53), min_size=1, max_size=60))
def test_quantiles_ascend_within_the_samples_in_any_order(samples: list[int]) -> None:
    found = summarize_samples(samples)
    assert min(samples) <= found.p05_ns <= found.latency_ns <= found.p95_ns <= found.p99_ns <= max(samples)
    assert summarize_samples(samples[::-1]) == found
