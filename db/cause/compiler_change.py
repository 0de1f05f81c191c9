"""What the compiler did differently on two builds, as a list of sentences; what neither side knows is left
out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from db.records.evidence import CompilerEvent, CompilerFacts
from db.wording.units import count, plural, size

NAMED = 2
"""So many reasons are named where something is new."""


def compiler_changes(base: CompilerFacts, head: CompilerFacts) -> list[str]:
    """What changed from `base` to `head`: graphs, breaks, recompilations, CUDA graphs, code, caches."""
    return [
        *_counts("graph", base.graphs, head.graphs),
        *_counts("captured operation", base.ops_captured, head.ops_captured),
        *_events("graph break", base.graph_breaks, head.graph_breaks),
        *_events("recompilation", base.recompiles, head.recompiles),
        *_reasons("skipped frame", base.skipped_frames, head.skipped_frames),
        *_limit(base, head),
        *_counts("CUDA graph", base.cudagraph_launches, head.cudagraph_launches, " a step"),
        *_reasons("skipped CUDA graph", base.cudagraph_skips, head.cudagraph_skips),
        *_code(base, head),
        *_caches(base, head),
    ]


def _counts(noun: str, base: int | None, head: int | None, per: str = "") -> Iterator[str]:
    if base is not None and head is not None and base != head:
        yield f"{plural(base, noun)}{per} became {count(head)}"


def _events(
    noun: str, base: Sequence[CompilerEvent] | None, head: Sequence[CompilerEvent] | None
) -> Iterator[str]:
    if base is None or head is None:
        return
    totals = [sum(event.count for event in events) for events in (base, head)]
    known = {event.location for event in base}
    new = [event for event in head if event.location not in known]
    if totals[0] != totals[1]:
        where = "; ".join(f"{event.location or 'somewhere'}: {event.reason}" for event in new[:NAMED])
        yield f"{plural(totals[0], noun)} became {count(totals[1])}{f' ({where})' if where else ''}"


def _reasons(noun: str, base: Sequence[str] | None, head: Sequence[str] | None) -> Iterator[str]:
    if base is None or head is None:
        return
    if len(base) != len(head):
        new = "; ".join([reason for reason in head if reason not in base][:NAMED])
        yield f"{plural(len(base), noun)} became {count(len(head))}{f' ({new})' if new else ''}"


def _limit(base: CompilerFacts, head: CompilerFacts) -> Iterator[str]:
    if head.recompile_limit_hit and base.recompile_limit_hit is False:
        yield "a function reached the limit of recompilations and runs eagerly"
    if base.recompile_limit_hit and head.recompile_limit_hit is False:
        yield "no function reaches the limit of recompilations any more"


def _code(base: CompilerFacts, head: CompilerFacts) -> Iterator[str]:
    """Kernels and their source; graphs are matched by their order."""
    before, after = base.generated, head.generated
    if before is None or after is None:
        return
    yield from _counts(
        "generated kernel", sum(graph.kernels for graph in before), sum(graph.kernels for graph in after)
    )
    differing = sum(one.hash != other.hash for one, other in zip(before, after, strict=False))
    differing += abs(len(before) - len(after))
    if differing:
        sizes = [size(sum(graph.size_bytes for graph in graphs)) for graphs in (before, after)]
        of = plural(max(len(before), len(after)), "graph")
        yield f"generated code differs in {count(differing)} of {of} ({sizes[0]} became {sizes[1]})"


def _caches(base: CompilerFacts, head: CompilerFacts) -> Iterator[str]:
    if base.cache is None or head.cache is None:
        return
    for name, what in (("fx_graph", "FX graph cache"), ("aot_autograd", "AOTAutograd cache")):
        for answer in ("hits", "bypasses"):
            before, after = (getattr(each.cache, f"{name}_{answer}") for each in (base, head))
            if before is not None and after is not None and before != after:
                yield f"{answer} of the {what}: {count(before)} became {count(after)}"
