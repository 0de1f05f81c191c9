"""Comparable or not, with the differing fields named."""

from __future__ import annotations

from typing import Any

import pytest
from pandas import DataFrame

from compilewatch.db.judge.compare.sides import Selection
from compilewatch.db.judge.compare.upgrade import compare_builds
from compilewatch.db.judge.policy import Policy
from compilewatch.db.records.vocabulary import CauseClass, Verdict
from tests.db.judge.frames import sides
from tests.db.metrics.frames import trials_frame

THREE = (10.0, 10.1, 9.9)


@pytest.mark.parametrize(
    ("field", "value", "identity"),
    [
        ("batch_size", 16, "workload_id"),
        ("shape", {"sequence_length": 512}, "workload_id"),
        ("dtype", "float32", "workload_id"),
        ("workload_version", "v2", "workload_id"),
        ("cache", "warm", "strategy_id"),
        ("scope", "regional", "strategy_id"),
        ("device_name", "NVIDIA A100", "machine_id"),
    ],
)
def test_a_differing_condition_is_named_with_both_values(field: str, value: object, identity: str):
    trials = trials_frame(sides(THREE, THREE, head_fields={field: value, identity: "other"}))
    comparison = compare_builds(trials, "old", "new")
    assert comparison.verdict is Verdict.NOT_COMPARABLE
    assert (comparison.matched, comparison.total) == (0, 1)
    (left_out,) = comparison.left_out
    assert left_out.verdict is Verdict.NOT_COMPARABLE
    assert left_out.fields == (field,)
    assert left_out.cause is CauseClass.METHOD
    assert str(trials[field].iloc[0]).replace("'", '"') in left_out.reason
    assert str(value).replace("'", '"') in left_out.reason


@pytest.mark.parametrize(
    ("items", "told"),
    [
        (16.0, "differs in batch size (8 against 16)"),
        (20.0, "differs in batch size (8 against 16), items per iteration (8.0 against 20.0)"),
        (None, "differs in batch size (8 against 16), items per iteration (8.0 against unknown)"),
    ],
)
def test_items_that_grow_with_the_batch_are_not_said_twice(items: float | None, told: str):
    head = {"batch_size": 16, "items_per_iteration": items, "workload_id": "other"}
    (left_out,) = compare_builds(trials_frame(sides(THREE, THREE, head_fields=head)), "old", "new").left_out
    assert left_out.reason == told


def settings(**head: Any) -> DataFrame:
    base = {"matmul_precision": "high", "cpu_capability": "AVX2", "environment": {"OMP_PLACES": "cores"}}
    return trials_frame(
        sides(THREE, THREE, base_fields={"settings": base}, head_fields={"settings": base | head})
    )


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"matmul_precision": "highest"}, "settings.matmul_precision"),
        ({"environment": {"OMP_PLACES": "threads"}}, "settings.environment.OMP_PLACES"),
        ({"cudnn_benchmark": True}, "settings.cudnn_benchmark"),
    ],
)
def test_each_differing_setting_is_named(changed: dict[str, Any], field: str):
    (left_out,) = compare_builds(settings(**changed), "old", "new").left_out
    assert left_out.fields == (field,)
    name = field.removeprefix("settings.").removeprefix("environment.")
    assert left_out.reason.startswith(f"differs in {name} (")


def test_what_torch_finds_out_by_itself_is_no_setting():
    assert compare_builds(settings(cpu_capability="AVX512"), "old", "new").matched == 1


def test_what_ran_before_and_is_missing_now_is_said_and_what_is_new_too():
    rows = sides(THREE, THREE) + sides(THREE, [], workload="gone") + sides([], THREE, workload="fresh")
    comparison = compare_builds(trials_frame(rows), "old", "new")
    assert {case.workload: case.verdict for case in comparison.left_out} == {
        "gone": Verdict.MISSING,
        "fresh": Verdict.NOT_COMPARABLE,
    }
    assert (comparison.matched, comparison.total) == (1, 3)
    assert any("did not run on the head side" in sentence for sentence in comparison.sentences)


def test_one_machine_is_compared_and_the_other_is_named_as_the_base_has_it():
    here = sides(THREE, THREE) + sides(THREE, THREE, workload="second")
    there = sides(
        THREE,
        THREE,
        base_fields={"machine_id": "m2", "machine": "before"},
        head_fields={"machine_id": "m2", "machine": "renamed"},
    )
    trials = trials_frame(here + there)
    comparison = compare_builds(trials, "old", "new")
    assert (comparison.machine_id, comparison.matched) == ("m1", 2)
    (left_out,) = comparison.left_out
    assert left_out.reason == "compared on another machine (before); this comparison is for one machine"
    other = compare_builds(trials, "old", "new", machine_id="m2")
    assert (other.machine_id, other.matched, len(other.left_out)) == ("m2", 1, 2)


def test_two_runs_of_one_build_are_compared_too():
    trials = trials_frame(
        sides(THREE, THREE, runs=("R1", "R2"), base_fields={"build_id": "b"}, head_fields={"build_id": "b"})
    )
    comparison = compare_builds(
        trials, Selection(name="first", run_ids=("R1",)), Selection(name="second", run_ids=("R2",))
    )
    assert comparison.matched == 1
    assert comparison.changed_components == ("torch",)


def test_the_canary_is_no_case():
    rows = sides(THREE, THREE) + sides(THREE, THREE, workload="canary-gemm", strategy="eager")
    comparison = compare_builds(trials_frame(rows), "old", "new", Policy())
    assert comparison.matched == 1
    assert {row.workload for row in comparison.rows} == {"bert"}
    assert comparison.canary_change == pytest.approx(0.0)


def test_two_machines_of_one_name_are_told_apart_by_their_ids():
    trials = trials_frame(sides(THREE, THREE, head_fields={"machine_id": "m2"}))
    (left_out,) = compare_builds(trials, "old", "new").left_out
    assert left_out.reason == "differs in machine id (m1 against m2)"
    assert left_out.fields == ("machine_id",)


@pytest.mark.parametrize("identity", ["workload_id", "strategy_id"])
def test_what_no_column_shows_is_told_by_both_ids(identity: str):
    trials = trials_frame(
        sides(THREE, THREE, base_fields={identity: "first"}, head_fields={identity: "second"})
    )
    (left_out,) = compare_builds(trials, "old", "new").left_out
    assert left_out.reason == f"differs in {identity.replace('_', ' ')} (first against second)"
    assert left_out.fields == (identity,)


def test_a_missing_case_names_its_size_only_where_another_size_was_compared():
    rows = sides(THREE, THREE) + sides(THREE, [], workload="gone")
    rows += sides(THREE, [], base_fields={"workload_id": "w-large", "batch_size": 64, "shape": {"n": 1}})
    comparison = compare_builds(trials_frame(rows), "old", "new")
    assert (comparison.matched, comparison.total) == (1, 3)
    assert {case.verdict for case in comparison.left_out} == {Verdict.MISSING}
    assert {case.workload: case.reason for case in comparison.left_out} == {
        "gone": "ran on the base side, is missing on the head side",
        "bert": 'ran on the base side at this size (batch 64, shape {"n": 1}), is missing on the head side',
    }
