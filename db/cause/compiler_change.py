"""What the compiler did, and what it did differently on two builds, as texts; what neither side knows is left
out.

Which part of the compiler a failure comes from, in words, with the line that shows it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import unified_diff

from compilewatch.db.records.evidence import AutotunedOperation, Bisection, CompilerEvent, CompilerFacts
from compilewatch.db.records.sampling_facts import GeneratedSource
from compilewatch.db.units import count, duration, plural, size

NAMED = 2
"""So many reasons are named where something is new."""

_LISTED = 5
_UNKNOWN_SKIP = "no reason given"
"""What the worker writes where torch only counted a skipped CUDA graph."""
MOST_LINES = 120
"""As long as the difference of one graph's code is at most."""
LONGEST_LINE = 160
_MOST_COMPARED = 1_000


def compiler_changes(base: CompilerFacts, head: CompilerFacts) -> list[str]:
    """What changed from `base` to `head`: graphs, breaks, recompilations, CUDA graphs, code,
    autotuning, caches."""
    return [
        *_counts("graph", base.graphs, head.graphs),
        *_counts("captured operation", base.ops_captured, head.ops_captured),
        *_events("graph break", base.graph_breaks, head.graph_breaks),
        *_events("recompilation", base.recompiles, head.recompiles),
        *_reasons("skipped frame", base.skipped_frames, head.skipped_frames),
        *_limit(base, head),
        *_counts("CUDA graph", base.cudagraph_launches, head.cudagraph_launches, " a step"),
        *_skips(base.cudagraph_skips, head.cudagraph_skips),
        *_code(base, head),
        *_autotuning(base, head),
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


def _skips(base: Sequence[str] | None, head: Sequence[str] | None) -> Iterator[str]:
    """Skipped CUDA graphs: how many, else which reasons came and went. What follows a reason in brackets
    names a node of that trace.
    """
    if base is None or head is None:
        return
    if len(base) != len(head):
        yield from _reasons("skipped CUDA graph", base, head)
        return
    before, after = ({reason.split(" (")[0]: reason for reason in reasons} for reasons in (base, head))
    old, new = ("; ".join(_only(one, other)) for one, other in ((before, after), (after, before)))
    if new and not new.startswith(_UNKNOWN_SKIP) and not old.startswith(_UNKNOWN_SKIP):
        yield f"CUDA graphs are skipped for another reason ({new}{f' instead of {old}' if old else ''})"


def _only(one: Mapping[str, str], other: Mapping[str, str]) -> list[str]:
    return [reason for kind, reason in one.items() if kind not in other][:NAMED]


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


def _autotuning(base: CompilerFacts, head: CompilerFacts) -> Iterator[str]:
    """Operations that both sides timed candidates for: other implementations by name, other configurations by
    their number, since those of equal speed are taken by chance.
    """
    sides = [{(each.operation, each.inputs): each for each in side.autotuned or ()} for side in (base, head)]
    pairs = [(each, sides[1][key]) for key, each in sides[0].items() if key in sides[1]]
    other = [(old, new) for old, new in pairs if old.candidate != new.candidate]
    for old, new in other[:NAMED]:
        of = f" of {new.inputs}" if new.inputs else ""
        taken, before = (_timed(each.candidate, each) for each in (new, old))
        yield f"autotuning took {taken} for {new.operation}{of} instead of {before}"
    if len(other) > NAMED:
        yield f"autotuning took other kernels for {plural(len(other) - NAMED, 'more operation')}"
    configured = sum(
        old.candidate == new.candidate and old.configuration != new.configuration for old, new in pairs
    )
    if configured:
        of = plural(len(pairs), "kernel")
        yield f"autotuning took other configurations for {count(configured)} of {of}"


def generated_text(facts: CompilerFacts) -> str | None:
    """Kernels and size of the code for each graph, with its hash; None where nothing was generated."""
    graphs = facts.generated
    if not graphs:
        return None
    each = [f"{plural(graph.kernels, 'kernel')}, {size(graph.size_bytes)}, {graph.hash}" for graph in graphs]
    rest = f"; {plural(len(each) - _LISTED, 'more graph')}" if len(each) > _LISTED else ""
    return f"{'; '.join(each[:_LISTED])}{rest}"


def autotuned_texts(facts: CompilerFacts) -> list[str]:
    """Of every operation that was autotuned the kernel that was taken; the last line counts the rest."""
    lines = []
    for each in facts.autotuned or ():
        of = f" of {each.inputs}" if each.inputs else ""
        what = each.candidate if each.candidate != each.operation else _set(each.configuration) or "default"
        lines.append(f"{each.operation}{of}: {_timed(what, each)}, of {plural(each.candidates, 'candidate')}")
    more = len(lines) - _LISTED
    return lines if more <= 0 else [*lines[:_LISTED], plural(more, "more operation")]


def _set(configuration: str | None) -> str:
    """What a configuration sets: Triton writes None for the rest."""
    return ", ".join(each for each in (configuration or "").split(", ") if not each.endswith(": None"))


def _timed(what: str, operation: AutotunedOperation) -> str:
    return what if operation.time_ns is None else f"{what} ({duration(operation.time_ns)})"


def _caches(base: CompilerFacts, head: CompilerFacts) -> Iterator[str]:
    if base.cache is None or head.cache is None:
        return
    for name, what in (("fx_graph", "FX graph cache"), ("aot_autograd", "AOTAutograd cache")):
        for answer in ("hits", "bypasses"):
            before, after = (getattr(each.cache, f"{name}_{answer}") for each in (base, head))
            if before is not None and after is not None and before != after:
                yield f"{answer} of the {what}: {count(before)} became {count(after)}"


@dataclass(frozen=True)
class SourceChange:
    """How the generated code of one graph differs: a unified diff, line by line; `graph` counts from 1."""

    graph: int
    lines: tuple[str, ...]


def source_changes(
    base: Sequence[GeneratedSource], head: Sequence[GeneratedSource]
) -> Iterator[SourceChange]:
    """Graph by graph in the order they were written, those that differ; a graph of one side is new."""
    for number in range(max(len(base), len(head))):
        before, after = (side[number].source if number < len(side) else "" for side in (base, head))
        if before != after:
            yield SourceChange(number + 1, tuple(_diff(before.splitlines(), after.splitlines())))


def _diff(before: Sequence[str], after: Sequence[str]) -> Iterator[str]:
    # The time of a diff can grow with the cube of the lines, and records are anybody's.
    before, after = before[:_MOST_COMPARED], after[:_MOST_COMPARED]
    lines = list(unified_diff(before, after, "base", "head", lineterm=""))
    if not lines:
        yield f"They differ after {count(_MOST_COMPARED)} lines."
    for line in lines[:MOST_LINES]:
        yield line if len(line) <= LONGEST_LINE else f"{line[:LONGEST_LINE]}…"
    if len(lines) > MOST_LINES:
        yield plural(len(lines) - MOST_LINES, "more line")


_PASSES = {
    "pre_grad_passes": "Inductor's pass {operator} over the graph before autograd",
    "joint_graph_passes": "Inductor's pass {operator} over the joint graph",
    "post_grad_passes": "Inductor's pass {operator} over the graph after autograd",
    "decomposition": "The decomposition of {operator}",
    "lowerings": "Inductor's lowering of {operator}",
    "cudagraphs": "A CUDA graph",
}
_BACKENDS = {
    "eager": "Dynamo's capture",
    "aot_eager": "AOTAutograd",
    "aot_eager_decomp_partition": "AOTAutograd's decompositions or partitioner",
    "aot_eager_decomp_partition_crossref": "A decomposition, checked against its operator,",
    "inductor": "Inductor, outside of its passes and lowerings,",
}

_NOT_NAMED = {
    "passed": "It did not fail again ({tried}).",
    "out_of_time": "No part of the compiler was named in time ({tried}): raise `bisect_s` in [run].",
    "unstable": "It fails by chance: the same compilation was right once and wrong once ({tried}).",
    "host": "Inductor compiles nothing on this host, not even `x + 1` ({tried}).",
}


def bisection_sentence(found: Bisection) -> str:
    """What was found, in one sentence."""
    tried = f"{plural(found.attempts, 'compilation')}, {duration(found.spent_ns)}"
    if found.outcome != "named":
        return _NOT_NAMED[found.outcome].format(tried=tried)
    backend, subsystem = found.backend or "", found.subsystem
    if subsystem is None:
        return f"{_BACKENDS.get(backend, backend)} makes it fail ({tried})."
    named = _PASSES.get(subsystem)
    if named is None:
        return f"It does not fail with {_option(backend, subsystem)} changed ({tried})."
    return f"{named.format(operator=found.operator or 'an operator')} makes it fail ({tried})."


def replay_line(found: Bisection) -> str | None:
    """How the failure comes and goes; None where nothing was named."""
    if found.outcome != "named" or found.backend is None:
        return None
    if found.subsystem is None:
        return f'It fails with torch.compile(..., backend="{found.backend}").'
    if found.subsystem not in _PASSES or found.number is None:
        return f"Change `{_option(found.backend, found.subsystem)}` to see it come and go."
    variables = f"TORCH_BISECT_BACKEND={found.backend} TORCH_BISECT_SUBSYSTEM={found.subsystem}"
    fails, right = found.number, found.number - 1
    return f"It fails with {variables} TORCH_BISECT_MAX={fails}, and not with TORCH_BISECT_MAX={right}."


def _option(backend: str, subsystem: str) -> str:
    """The option of a subsystem that is one: "emulate_precision_casts" of "inductor_emulate_..."."""
    return subsystem.removeprefix(f"{backend}_")
