"""What is said of a workload of several batches."""

from __future__ import annotations

from db.records.evidence import CompileAt, StreamFacts
from db.wording.trials import compile_texts, stream_texts

MS = 1_000_000


def test_an_epoch_says_how_long_it_took_and_when_it_compiled() -> None:
    reason = "tensor 'x' size mismatch at index 0. expected 32, actual 9"
    facts = StreamFacts(
        batches=3,
        shapes=2,
        first_batches_ns=[9000 * MS, 10 * MS, 5000 * MS],
        control_first_batches_ns=[30 * MS, 10 * MS, 10 * MS],
        compiles=[
            CompileAt(batch=1, part="forward", took_ns=8000 * MS),
            CompileAt(batch=3, part="forward", took_ns=4500 * MS, reason=reason),
        ],
    )
    assert stream_texts(facts) == [
        ("batches per iteration", "3 of 2 shapes"),
        ("first iteration", "14.0 s (eager 50.0 ms)"),
        ("compilations in it", "2, 12.5 s together"),
    ]
    assert compile_texts(facts) == [
        ("batch 1 of 3", "forward, 8.00 s"),
        ("batch 3 of 3", f"forward, 4.50 s: {reason}"),
    ]


def test_requests_of_different_lengths_say_what_padding_wastes() -> None:
    facts = StreamFacts(
        batches=64,
        shapes=51,
        policy="buckets",
        tokens=3000,
        padded_tokens=4000,
        latency_per_token_ns=1500.0,
        control_latency_per_token_ns=3000.0,
    )
    assert stream_texts(facts) == [
        ("batches per iteration", "64 of 51 shapes"),
        ("bucket policy", "buckets"),
        ("tokens per iteration", "3,000"),
        ("padding waste", "25.0 % of 4,000 computed"),
        ("latency per token", "1.50 µs (eager 3.00 µs)"),
    ]
    assert compile_texts(facts) == []


def test_what_is_not_known_is_not_said() -> None:
    assert StreamFacts(batches=1, shapes=1, tokens=5).padding_fraction is None
    assert stream_texts(StreamFacts(batches=1, shapes=1)) == [("batches per iteration", "1 of 1 shape")]
