"""Versions sort as people read them."""

from __future__ import annotations

import random

import pytest

from compilewatch.db.records.identity import version_key


@pytest.mark.parametrize(
    "ordered",
    [
        [
            "2.6.0",
            "2.9.1",
            "2.10.0",
            "2.13.0.dev20260101",
            "2.13.0a0+git12ab",
            "2.13.0",
            "2.13.0+cu130",
            "2.14.1",
        ],
        ["550.54.15", "570.86", "580.159.03", "580.159.10"],
        ["Linux 5.15", "Linux 6.8", "Linux 6.18"],
        [None, "9.13", "13.0"],
        ["cpu", "cu126", "cu130"],
    ],
)
def test_versions_sort_as_people_read_them(ordered: list[str | None]) -> None:
    shuffled = random.Random(0).sample(ordered, len(ordered))
    assert sorted(shuffled, key=version_key) == ordered
