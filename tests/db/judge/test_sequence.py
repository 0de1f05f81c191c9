"""Which of two builds is the newer one."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from pandas import DataFrame

from compilewatch.db.judge.sequence import builds_interleaved, release_order
from compilewatch.db.records.identity import STACK
from tests.db.metrics.frames import trial, trials_frame

ALIKE = {
    "torch": "2.13.0",
    "torch_variant": "cu130",
    "cuda": "13.0",
    "driver": "580.9",
    "triton": "3.9",
    "cudnn": "9.9",
    "python": "3.9",
    "os": "linux 6.9",
}
NEWER = {
    "torch": "2.14.0",
    "torch_variant": "cu131",
    "cuda": "13.10",
    "driver": "580.10",
    "triton": "3.10",
    "cudnn": "9.10",
    "python": "3.10",
    "os": "linux 6.10",
}


def order(*builds: dict[str, Any]) -> list[str]:
    return release_order(DataFrame([{"build_id": str(i)} | build for i, build in enumerate(builds)]))


@pytest.mark.parametrize("part", STACK)
def test_each_part_of_the_stack_decides_by_its_version(part: str):
    assert order(ALIKE | {part: NEWER[part]}, ALIKE) == ["1", "0"]
    assert order(ALIKE, ALIKE | {part: None}) == ["1", "0"]


@pytest.mark.parametrize(("first", "second"), [*itertools.pairwise(STACK)])
def test_an_earlier_part_decides_before_a_later_one(first: str, second: str):
    assert order(ALIKE | {first: NEWER[first]}, ALIKE | {second: NEWER[second]}) == ["1", "0"]


def test_equal_builds_are_ordered_by_their_ids_and_each_is_named_once():
    table = DataFrame([ALIKE | {"build_id": name} for name in ("b", "a", "b")])
    assert release_order(table) == ["a", "b"]
    assert release_order(table[["build_id"]]) == ["a", "b"]


def test_nothing_took_turns_where_nothing_ran():
    assert builds_interleaved(trials_frame([])) is False


def test_two_builds_of_one_run_took_turns_and_one_build_alone_did_not():
    assert builds_interleaved(trials_frame([trial(torch="2.12"), trial(torch="2.13")]))
    assert not builds_interleaved(trials_frame([trial(torch="2.12"), trial(torch="2.12")]))
    assert not builds_interleaved(trials_frame([trial(torch="2.12"), trial(torch="2.13", run_id="R2")]))
