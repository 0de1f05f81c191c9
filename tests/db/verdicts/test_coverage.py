"""Compared N of M."""

from __future__ import annotations

from db.verdicts.coverage import coverage_of, coverage_of_run
from db.verdicts.upgrade import compare_builds
from db.verdicts.vocabulary import Verdict
from tests.db.verdicts.frames import frame, sides, trial

THREE = (10.0, 10.1, 9.9)


def test_a_comparison_says_how_many_of_how_many():
    rows = sides(THREE, THREE) + sides(THREE, [], workload="gone")
    coverage = coverage_of(compare_builds(frame(rows), "old", "new"))
    assert (coverage.compared, coverage.total) == (1, 2)
    assert coverage.sentence == "Compared 1 of 2 cases; 1 that ran before did not run now."
    assert [case.workload for case in coverage.missing] == ["gone"]


def test_a_failed_case_ran_and_a_new_one_is_not_missing():
    earlier = frame([trial("a"), trial("b"), trial("c", "eager")])
    newest = frame([trial("a"), trial("b", status="failed", failure_kind="timeout"), trial("d")])
    coverage = coverage_of_run(newest, earlier)
    assert (coverage.compared, coverage.total) == (2, 4)
    assert {(c.workload, c.strategy): c.verdict for c in coverage.left_out} == {
        ("c", "eager"): Verdict.MISSING,
        ("d", "default"): Verdict.NOT_COMPARABLE,
    }
