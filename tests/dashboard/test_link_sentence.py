"""What a link shows, in words."""

from __future__ import annotations

from datetime import date

from dashboard.link_sentence import sentence
from dashboard.links import Link, Page


def test_the_sentence_says_what_is_shown() -> None:
    link = Link(
        page=Page.TRENDS,
        metric="latency",
        axis="torch",
        workload=("bert-base", "mlp"),
        strategy=("default",),
        machine="abc",
        since=date(2026, 11, 1),
    )
    said = sentence(link, {"machine": {"abc": "gpu-box-3 (NVIDIA H200)"}})
    assert said == (
        "Latency over torch versions of bert-base and mlp with default on gpu-box-3 (NVIDIA H200) "
        "since 2026-11-01."
    )
