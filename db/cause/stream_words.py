"""What is said of a workload of several batches: names and texts, in order."""

from __future__ import annotations

from compilewatch.db.records.streams import StreamFacts
from compilewatch.db.units import MISSING, count, duration, percent, plural


def stream_texts(facts: StreamFacts) -> list[tuple[str, str]]:
    """The figures of a stream, those that are known."""
    texts = [("batches per iteration", f"{count(facts.batches)} of {plural(facts.shapes, 'shape')}")]
    if facts.policy is not None:
        texts.append(("bucket policy", facts.policy))
    if facts.tokens is not None:
        texts.append(("tokens per iteration", count(facts.tokens)))
    if facts.padding_fraction is not None:
        computed = f"{count(facts.padded_tokens)} computed"
        texts.append(("padding waste", f"{percent(facts.padding_fraction)} of {computed}"))
    if facts.latency_per_token_ns is not None:
        own, eager = facts.latency_per_token_ns, facts.control_latency_per_token_ns
        texts.append(("latency per token", _streams_beside_eager(own, eager)))
    if len(facts.first_batches_ns) == facts.batches:
        eager_ns = sum(facts.control_first_batches_ns) or None
        texts.append(("first iteration", _streams_beside_eager(sum(facts.first_batches_ns), eager_ns)))
    if facts.compiles is not None:
        spent = sum(each.took_ns for each in facts.compiles)
        texts.append(("compilations in it", f"{count(len(facts.compiles))}, {duration(spent)} together"))
    return texts


def _streams_beside_eager(own_ns: float, eager_ns: float | None) -> str:
    return duration(own_ns) + (f" (eager {duration(eager_ns)})" if eager_ns else "")


def compile_texts(facts: StreamFacts) -> list[tuple[str, str]]:
    """Where and why something was compiled, a row for each time."""
    of = count(facts.batches)
    rows = []
    for each in facts.compiles or ():
        reason = f": {each.reason}" if each.reason else ""
        text = f"{each.part or MISSING}, {duration(each.took_ns)}{reason}"
        rows.append((f"batch {count(each.batch)} of {of}", text))
    return rows
