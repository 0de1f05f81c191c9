"""How samples were taken, word by word."""

from __future__ import annotations

from typing import Any

import pytest

from db.records.sampling import SamplingFacts
from db.wording.trials import sample_count_text

UNKNOWN = "too few samples for an interval of the median"


def taken(**fields: Any) -> str:
    given = {
        "samples": 50,
        "max_samples": 200,
        "block_ns": 10**8,
        "order": "ABBA",
        "garbage_collector": False,
        "ended_by": "interval",
    }
    return sample_count_text(SamplingFacts(**given | fields))


@pytest.mark.parametrize(
    ("ended_by", "words"),
    [
        ("interval", "which was enough"),
        ("samples", "at the limit of 200 samples"),
        ("time", "at the limit of time"),
        ("disturbed", "with other work on the host in too many blocks"),
        ("signal", "ended by signal"),
    ],
)
def test_what_ended_sampling_is_said(ended_by: str, words: str) -> None:
    assert taken(ended_by=ended_by) == f"{UNKNOWN}, {words}"


def test_how_well_the_median_is_known() -> None:
    assert taken(reached_interval=0.011) == "median known to ±1.10 %, which was enough"
    assert taken(reached_interval=0.011, relative_interval=0.02) == (
        "median known to ±1.10 % (target: ±2.00 %), which was enough"
    )
    assert taken(relative_interval=0.02) == f"{UNKNOWN}, which was enough"


def test_the_cache_and_the_warm_up_are_mentioned_where_they_matter() -> None:
    assert taken(flush_l2=True).endswith("which was enough, L2 cache flushed before each")
    assert taken(flush_l2=False).endswith("which was enough, L2 cache not flushed")
    assert taken(warmup_ended_by="time").endswith("latency had not settled")
    assert taken(warmup_ended_by="steady") == taken() == f"{UNKNOWN}, which was enough"
