"""What the judge returns says by itself: counts, verdicts on cases, the document, the step of an event."""

from __future__ import annotations

import math
from typing import Any

import pytest

from compilewatch.dashboard.verdicts import headlines
from compilewatch.db.judge.compare.upgrade import compare_builds
from compilewatch.db.judge.compare.whole import headline, sentences
from compilewatch.db.judge.decide import group_of_several
from compilewatch.db.judge.results import ChangeEvent, Comparison
from compilewatch.db.judge.sentences import besides, moved_in, other_metrics, tallied
from compilewatch.db.records.vocabulary import Metric, Verdict
from tests.db.judge.frames import sides
from tests.db.metrics.frames import trials_frame


def compared() -> Comparison:
    """`moved` got slower and breaks fewer graphs, `better` only the latter, `calm` nothing."""
    rows = sides([10.0] * 5, [12.0] * 5, workload="moved", head_fields={"graph_breaks": 0})
    rows += sides([10.0] * 5, [10.0] * 5, workload="better", head_fields={"graph_breaks": 0})
    rows = [row | {"graph_breaks": 3} if row["build_id"] == "old" else row for row in rows]
    rows += sides([10.0] * 5, [10.0] * 5, workload="calm")
    rows += sides([10.0], [11.0], workload="open")
    return compare_builds(trials_frame(rows), "old", "new")


def test_a_case_counts_once_by_what_moved_for_the_worse_else_for_the_better():
    comparison = compared()
    assert comparison.case_verdicts == {
        ("w-moved", "s-default"): Verdict.REGRESSED,
        ("w-better", "s-default"): Verdict.IMPROVED,
        ("w-calm", "s-default"): Verdict.UNCHANGED,
        ("w-open", "s-default"): Verdict.INCONCLUSIVE,
    }


def test_each_case_is_in_one_group_of_the_tally_and_metrics_are_named():
    comparison = compared()
    tally = comparison.tally
    assert tally.metric is Metric.LATENCY
    assert (tally.slower, tally.faster, tally.unchanged, tally.undecided) == (1, 0, 2, 1)
    assert tally.compared == comparison.matched
    assert tally.slower_by[Metric.LATENCY] == 1
    assert tally.faster_by == {Metric.GRAPH_BREAKS: 2}
    assert "graph breaks 2 better" in besides(tally)
    assert other_metrics(tally)[0] in comparison.sentences
    assert comparison.to_json()["tally"] == tally.model_dump(mode="json")
    assert tallied(tally) in comparison.sentences[0]


def test_a_tally_counts_the_metric_that_it_is_of():
    """A case that only compiles quicker got no faster, and what stands below is what is counted."""
    rows = sides([10.0] * 5, [10.0] * 5, workload="quicker", head_fields={"trial_compile_cost_ns": 1e9})
    rows = [row | {"trial_compile_cost_ns": 9e9} if row["build_id"] == "old" else row for row in rows]
    rows += sides([10.0] * 5, [12.0] * 5, workload="moved")
    comparison = compare_builds(trials_frame(rows), "old", "new")
    for metric in (Metric.LATENCY, Metric.COMPILE_COST):
        shown = [row for row in comparison.rows if row.metric is metric]
        tally = comparison.tally_of(metric)
        assert (tally.slower, tally.faster, tally.unchanged) == tuple(
            sum(row.verdict is verdict for row in shown)
            for verdict in (Verdict.REGRESSED, Verdict.IMPROVED, Verdict.UNCHANGED)
        )
    assert comparison.tally.faster == 0
    assert comparison.tally_of(Metric.COMPILE_COST).faster == 1
    assert "compile cost 1 better" in besides(comparison.tally)
    in_words = [moved_in(comparison.tally, each) for each in (Metric.LATENCY, Metric.COMPILE_COST)]
    assert in_words == ["1 slower", "1 better"]
    assert moved_in(comparison.tally, Metric.PEAK_MEMORY) == ""


def test_what_got_worse_in_another_metric_alone_is_in_the_headline():
    rows = sides([10.0] * 5, [10.0] * 5, workload="calm", head_fields={"trial_compile_cost_ns": 9e9})
    rows = [row | {"trial_compile_cost_ns": 1e9} if row["build_id"] == "old" else row for row in rows]
    comparison = compare_builds(trials_frame(rows), "old", "new")
    assert comparison.verdict is Verdict.REGRESSED
    assert "compile cost 1 worse" in headline(comparison, comparison.verdict)
    text, tone = headlines.of_tally(comparison.tally)
    assert "compile cost 1 worse" in text
    assert tone == "bad"


def test_a_workload_is_in_the_group_of_its_cases_that_counts_most():
    """Slower with one strategy is slower; the same only where every case is shown to be."""
    assert group_of_several(["unchanged", "slower", "failing"]) == "slower"
    assert group_of_several(["faster", "undecided"]) == "faster"
    assert group_of_several(["unchanged", "undecided"]) == "undecided"
    assert group_of_several(["unchanged", "unchanged"]) == "unchanged"
    comparison = compared()
    tally, models = comparison.tally, comparison.tally_of_workloads(Metric.LATENCY)
    assert models.compared == len({row.case.workload_id for row in comparison.rows}) <= tally.compared
    assert bool(models.slower) is bool(tally.slower)


def test_what_the_machine_explains_and_what_fails_have_groups_of_their_own():
    apart = {"runs": ("R1", "R2")}
    calm, slow = [10.0, 10.1, 9.9, 10.0, 10.0], [15.0, 15.1, 14.9, 15.0, 15.0]
    rows = sides(calm, slow, workload="moved", strategy="eager", **apart)  # type: ignore[arg-type]
    for name in ("gemm", "copy", "launch"):
        rows += sides(calm, slow, workload=f"canary-{name}", strategy="eager", **apart)  # type: ignore[arg-type]
    broken = {"status": "failed", "failure_kind": "crash", "latency_ns": None}
    rows += sides(calm, calm, workload="broken", head_fields=broken, **apart)  # type: ignore[arg-type]
    rows += sides(calm, [], workload="gone")
    tally = compare_builds(trials_frame(rows), "old", "new").tally
    assert (tally.set_aside, tally.failing, tally.missing) == (1, 1, 1)
    assert (tally.slower, tally.slower_by) == (0, {})
    assert tallied(tally).endswith("1 set aside, machine, 1 failing, 1 missing")


@pytest.mark.parametrize(
    ("changes", "speedup", "shown"),
    [
        # By median a change below 10 % would be the machine's, beside one of 40 % that nobody decided.
        ({"a": (0.4, 0.5), "b": (0.02, 0.1), "c": (0.02, 0.1)}, -0.35, "50.0 %"),
        ({"a": (0.08, 0.09), "b": (0.01, 0.03), "c": (0.01, 0.03)}, -0.05, "9.00 %"),
        ({"a": (0.02, 0.03), "b": (0.01, 0.04), "c": (0.01, 0.05)}, -0.01, "4.00 %"),
    ],
)
def test_what_may_be_the_machine_is_no_less_than_what_an_undecided_case_moved_by(
    changes: dict[str, tuple[float, float]], speedup: float, shown: str
):
    calm = [10.0, 10.1, 9.9]
    trials = [row for name in changes for row in sides(calm, calm, workload=name, runs=("R1", "R2"))]
    comparison = compare_builds(trials_frame(trials), "old", "new")
    rows = []
    for row in comparison.rows:
        if row.metric in (Metric.LATENCY, Metric.SPEEDUP):
            change, visible = changes[row.workload]
            if row.metric is Metric.SPEEDUP:
                change = speedup if row.workload == "a" else 0.0
            told = {"verdict": Verdict.INCONCLUSIVE, "change": change, "visible_change": visible}
            row = row.model_copy(update=told)
        rows.append(row)
    told = comparison.model_copy(update={"rows": tuple(rows)})
    assert f"a change below {shown} may be the machine" in " ".join(sentences(told))
    assert f"changes below {shown} not visible" in headline(told, Verdict.INCONCLUSIVE)


def test_rows_are_counted_by_verdict_and_the_document_says_so():
    comparison = compared()
    document = comparison.to_json()
    assert sum(comparison.counts.values()) == len(comparison.rows)
    assert list(comparison.counts) == list(Verdict)
    assert comparison.counts[Verdict.MISSING] == 0
    assert document["counts"] == {verdict.value: n for verdict, n in comparison.counts.items()}
    assert document["case_counts"] == {
        "regressed": 1,
        "improved": 1,
        "unchanged": 1,
        "inconclusive": 1,
        "not comparable": 0,
        "missing": 0,
    }
    assert document["policy"] == comparison.policy.to_json()
    assert (document["verdict"], document["matched"]) == ("regressed", 4)
    first, row = document["rows"][0], comparison.rows[0]
    assert (first["workload"], first["strategy"], first["metric"]) == ("better", "default", "latency")
    assert first["case"] == row.case.model_dump(mode="json")
    assert len(document["rows"]) == len(comparison.rows)


def test_a_row_is_named_by_its_case_and_has_the_unit_of_its_metric():
    units = {row.metric: row.unit for row in compared().rows if row.workload == "calm"}
    assert units == {
        Metric.LATENCY: "ns",
        Metric.SPEEDUP: "x",
        Metric.COMPILE_COST: "ns",
        Metric.PEAK_MEMORY: "bytes",
        Metric.BREAK_EVEN: "steps",
        Metric.GRAPH_BREAKS: "count",
        Metric.RECOMPILES: "count",
        Metric.NUMERICS: "status",
    }


def test_the_first_row_of_a_case_by_hand():
    """Five trials of 10 ms against five of 12 ms, eager 15 ms beside them, all without any noise."""
    row = next(row for row in compared().rows if row.workload == "moved" and row.metric is Metric.SPEEDUP)
    assert (row.base, row.head) == (pytest.approx(1.5), pytest.approx(1.25))
    assert row.change == pytest.approx(1.25 / 1.5 - 1)
    assert (row.eager_change, row.compiled_change) == (pytest.approx(0.0), pytest.approx(0.2))
    assert (row.trials, row.more_trials, row.verdict) == ((5, 5), None, Verdict.REGRESSED)
    assert row.case.batch_size == 8
    assert row.case.shape == {"sequence_length": 128}
    assert (row.case.task, row.case.dtype, row.case.cache) == ("inference", "bfloat16", "cold")
    assert (row.case.strategy_kind, row.case.strategy) == ("compile", "default")
    assert row.reason == "Speedup fell because compiled got slower."


@pytest.mark.parametrize(
    ("before", "after", "step"),
    [
        (10.0, 12.0, math.log(1.2)),
        (12.0, 10.0, -math.log(1.2)),
        ("pass", "crash", 0.0),
        ("pass", 1.0, 0.0),
        (1.0, "crash", 0.0),
        (0.0, 3.0, 0.0),
        (3.0, 0.0, 0.0),
    ],
)
def test_the_log_step_of_an_event_is_that_of_its_levels(before: Any, after: Any, step: float):
    event = ChangeEvent(
        event_id="e",
        series_id=None,
        metric=Metric.LATENCY,
        index=0,
        announced_at=0,
        before=before,
        after=after,
        change=None,
        interval=None,
        p_value=None,
        verdict=Verdict.REGRESSED,
        reason="",
    )
    assert event.log_step == pytest.approx(step)
