"""What a reader must know of a trial, the most important first, through every door."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from compilewatch.db.cause.notes import MANY_OPERATIONS, Parts, case_notes, notes_of
from compilewatch.db.records.evidence import (
    CacheCounters,
    CompilerEvent,
    CompilerFacts,
    Memory,
    Numerics,
    NumericsStatus,
)
from compilewatch.db.records.sampling_facts import SamplingFacts

STORM = [
    CompilerEvent(reason="L['self'].calls == 1", count=3),
    CompilerEvent(reason="L['self'].calls == 0", count=5),
]


def parts(state: str = "cold", *, numerics: NumericsStatus | None = None, **facts: Any) -> Parts:
    known = None if numerics is None else Numerics(status=numerics)
    return Parts(state, CompilerFacts(**{"graphs": 1} | facts), known)


def sampled(reached: float) -> SamplingFacts:
    plan: dict[str, Any] = {"samples": 50, "max_samples": 200, "block_ns": 1, "settle_ns": 1, "order": "A"}
    return SamplingFacts(**plan, reached_interval=reached, ended_by="time", garbage_collector=False)


@pytest.mark.parametrize(
    ("known", "text"),
    [
        (
            parts(recompiles=STORM, recompile_limit_hit=True),
            "recompile limit hit after 8 recompiles, most on L['self'].calls == 0: eager since",
        ),
        (parts(recompiles=STORM[:1]), "3 recompiles, most on L['self'].calls == 1"),
        (parts(graphs=0), "nothing compiled"),
        (parts(compiled_share=0.0), "nothing ran compiled in a timed step, only eager's operators"),
        (parts(numerics=NumericsStatus.NOT_CHECKED), "numerics not checked"),
        (
            Parts("cold", memory=Memory(growth_bytes_per_call=16_384.0)),
            "the process grows by 16.0 KiB a call",
        ),
        (
            Parts("cold", memory=Memory(peak_bytes=24 << 20, graph_pool_bytes=22 << 20)),
            "its peak memory has 22.0 MiB of whole CUDA graph pools, eager's only tensors",
        ),
        (Parts("cold", sampling=sampled(0.14)), "median known to ±14.0 % only"),
        (
            parts(skipped_frames=["forward (model.py:12) in a loop", "b (c.py:1)"]),
            "2 skipped frames: forward (model.py:12) in a loop",
        ),
        (
            parts(warnings=["Torchinductor does not support code generation for complex operators.", "b"]),
            "torch warns: Torchinductor does not support code generation for complex operators. and 1 more",
        ),
        (
            parts("warm", cache=CacheCounters(fx_graph_hits=1, fx_graph_misses=2)),
            "the warm start missed: FX graph cache 2 misses, FX graph cache 1 hit",
        ),
        (
            parts(
                cache=CacheCounters(aot_autograd_hits=0, aot_autograd_misses=0, aot_autograd_bypasses=1),
                cache_bypasses=["autograd cache: Unsupported autograd function"],
            ),
            "1 graph that the AOTAutograd cache cannot hold (autograd cache: Unsupported autograd function)",
        ),
        (parts(ops_captured=MANY_OPERATIONS), "1,000 captured operations"),
    ],
)
def test_each_says_what_it_is_about(known: Parts, text: str) -> None:
    assert list(notes_of(known).values()) == [text]


@pytest.mark.parametrize(
    "known",
    [
        parts(),
        parts(
            ops_captured=MANY_OPERATIONS - 1, numerics=NumericsStatus.PASS, skipped_frames=[], recompiles=[]
        ),
        parts("warm", cache=CacheCounters(fx_graph_hits=3, fx_graph_misses=0)),
        # What is compiled again may be in the caches of the same process.
        parts(cache=CacheCounters(fx_graph_hits=2, fx_graph_misses=3)),
        Parts("cold", sampling=sampled(0.10)),
        Parts("cold"),
    ],
)
def test_what_is_as_it_should_be_has_none(known: Parts) -> None:
    assert notes_of(known) == {}


def test_the_most_important_comes_first_and_several_trials_say_it_once() -> None:
    storm = parts(recompiles=STORM, recompile_limit_hit=True, ops_captured=5_000)
    worst = replace(storm, memory=Memory(growth_bytes_per_call=2e6), sampling=sampled(0.5))
    calm = parts(ops_captured=5_000)
    assert [text.split()[0] for text in case_notes([worst])] == ["recompile", "the", "median", "5,000"]
    limit, *_, operations = case_notes([calm, worst, calm])
    assert limit.endswith("eager since (1 of 3 trials)")
    assert operations == "5,000 captured operations"
    assert case_notes([calm, calm]) == ["5,000 captured operations"]
    assert case_notes([]) == []


def test_a_reason_is_one_line_of_bounded_length_that_drives_no_terminal() -> None:
    (text,) = notes_of(parts(warnings=["\x1b[31m" + "x" * 900 + "\nsecond line"])).values()
    assert len(text) < 200
    assert "\x1b" not in text
    assert "second" not in text
