"""What the compiler did with the workload: graphs, breaks, recompilations, skips, caches."""

from __future__ import annotations

import contextlib
import hashlib
import math
import re
import textwrap
from collections import Counter
from collections.abc import Callable
from pathlib import Path, PurePath
from typing import Any

import torch

from compilewatch.runner.worker.step.internals import (
    Tuning,
    chosen_configuration,
    compilation_metrics,
    counters,
    falls_back,
    generated_modules,
    register_capturing_backend,
)

_TEXT_LIMIT = 2_000
_NAME_LIMIT = 200
_LIST_LIMIT = 100
_SOURCE_LIMIT = 60_000
_SOURCES = 8

# torch/_dynamo/symbolic_convert.py and convert_frame.py: "Graph break in user code at FILE:LINE" and
# "Graph Break Reason: ..." (2.7+) or "Reason: ..." (2.6).
_BREAK_AT = re.compile(r"[Gg]raph break.*? in user code at (\S+:\d+)")
# The first line often says only that there is a break; the next one then says why.
_BREAK_REASON = re.compile(
    r"Reason: *(?:(?:Encountered graph break|Failed to handle graph break gracefully)[^\n]*\n+)?([^\n]+)"
)
_EXPLANATION = re.compile(r"^ *Explanation: *(.+)$", re.MULTILINE)
_HINT = re.compile(r"^ *Hint: *(.+)$", re.MULTILINE)
# torch/_dynamo/graph_break_hints.py: the same for whole kinds of breaks, and no help to their author.
_NO_HELP = (
    "Please report an issue",
    "It may be possible to write Dynamo tracing rules",
    "This is likely to be a Dynamo bug",
    "This graph break is fundamental",
    "This graph break may be difficult to debug",
)
# torch/_dynamo/guards.py: "Recompiling function f in FILE:LINE" and then one failed guard per line.
_RECOMPILE_AT = re.compile(r"Recompiling function (\S+) in (\S+:\d+)")
_GUARD_LINE = re.compile(r"^\s*- \S*: (.+)$", re.MULTILINE)
# After the guard, the line of the user's code with its path, and a hint that is the same for all.
_GUARDED_AT = re.compile(r"\s+# ")
_LIMIT = re.compile(r"hit (?:config\.\w+|\S*recompile_limit|\S*cache_size_limit)", re.IGNORECASE)
# torch/_inductor/codecache.py and torch/_functorch/_aot_autograd/autograd_cache.py.
_BYPASS = re.compile(r"Bypassing (.+? cache) (?:because|due to:?) '?(.+?)'?$", re.IGNORECASE | re.DOTALL)
_CUDAGRAPH_SKIP = re.compile(r"skipping cudagraphs? (?:due to|because)?:?\s*(.+)", re.IGNORECASE)


def short_location(location: str) -> str:
    """File name and line of "DIRECTORY/FILE:LINE": enough to find it, without telling this host's paths."""
    file, _, line = location.rpartition(":")
    return f"{PurePath(file).name}:{line}"


def _events(counts: Counter[tuple[str, str | None]]) -> list[dict[str, Any]]:
    return [
        {"reason": reason[:_TEXT_LIMIT], "location": location, "count": count}
        for (reason, location), count in list(counts.items())[:_LIST_LIMIT]
    ]


def _break_reason(text: str) -> str:
    """What the compiler could not do, and from release 2.7 on its explanation."""
    match, explained = _BREAK_REASON.search(text), _EXPLANATION.search(text)
    reason = match.group(1).strip() if match else text.strip().partition("\n")[0] or "unknown"
    return f"{reason}: {explained.group(1).strip()}" if explained else reason


def graph_breaks(messages: list[tuple[str, str]]) -> list[dict[str, Any]]:
    """Breaks from the log: reason, user file:line, how often."""
    counts: Counter[tuple[str, str | None]] = Counter()
    for artifact, text in messages:
        if artifact == "graph_breaks":
            at = _BREAK_AT.search(text)
            counts[(_break_reason(text), short_location(at.group(1)) if at else None)] += 1
    return _events(counts)


def break_hints(messages: list[tuple[str, str]]) -> list[str] | None:
    """What torch proposes against each break (from 2.7): "FILE:LINE: hint", each once."""
    hints = []
    for artifact, text in messages:
        if artifact == "graph_breaks":
            at = _BREAK_AT.search(text)
            where = f"{short_location(at.group(1))}: " if at else ""
            hints += [where + hint for hint in _HINT.findall(text) if not hint.startswith(_NO_HELP)]
    return [hint[:_TEXT_LIMIT] for hint in dict.fromkeys(hints)][:_LIST_LIMIT] or None


def recompiles(messages: list[tuple[str, str]]) -> list[dict[str, Any]]:
    """Recompilations from the log: the failed guard, the function's file:line, how often."""
    counts: Counter[tuple[str, str | None]] = Counter()
    for artifact, text in messages:
        at = _RECOMPILE_AT.search(text)
        if artifact != "recompiles" or at is None:
            continue
        guards = _GUARD_LINE.findall(text)
        reason = _GUARDED_AT.split(guards[0])[0].strip() if guards else text.strip().splitlines()[-1].strip()
        counts[(reason, short_location(at.group(2)))] += 1
    return _events(counts)


def skipped_frames(metrics: list[Any] | None, messages: list[tuple[str, str]]) -> list[str] | None:
    """Frames that Dynamo looked at and left to Python: no guarded code came of them."""
    if metrics is None:
        return None
    skipped = []
    after_breaks = _frames_after_breaks(metrics, messages)
    for entry in metrics:
        has_none = getattr(entry, "has_guarded_code", None) is False or _frame(entry) in after_breaks
        if has_none and getattr(entry, "is_forward", True) is not False:
            where = f"{entry.co_filename}:{entry.co_firstlineno}"
            reason = getattr(entry, "fail_reason", None) or ""
            skipped.append(f"{entry.co_name} ({short_location(where)}) {reason}".strip()[:_TEXT_LIMIT])
    return list(dict.fromkeys(skipped))[:_LIST_LIMIT]


def _frame(entry: Any) -> tuple[Any, Any]:
    return getattr(entry, "co_filename", None), getattr(entry, "co_firstlineno", None)


def _frames_after_breaks(metrics: list[Any], messages: list[tuple[str, str]]) -> set[tuple[Any, Any]]:
    """Frames with a break in them of which no entry has guards.

    From 2.7 to 2.10 a skipped frame's entry says `has_guarded_code`; it only lacks guards, like that of a
    frame with nothing to compile in it.
    """
    guarded = {_frame(entry) for entry in metrics if getattr(entry, "guard_count", None) is not None}
    frames = set()
    for artifact, text in messages:
        at = _BREAK_AT.search(text)
        if artifact != "graph_breaks" or at is None:
            continue
        file, _, line = at.group(1).rpartition(":")
        around = [first for name, first in map(_frame, metrics) if name == file and first <= int(line)]
        if around and (file, max(around)) not in guarded:
            frames.add((file, max(around)))
    return frames


def recompile_limit_hit(messages: list[tuple[str, str]], metrics: list[Any] | None) -> bool:
    """Whether a function reached the limit, after which Dynamo runs it eagerly without another word."""
    if any(_LIMIT.search(text) for _, text in messages):
        return True
    return any(
        "RecompileLimitExceeded" in str(getattr(entry, "fail_type", None))
        or "recompile limit" in str(getattr(entry, "fail_reason", None)).lower()
        for entry in metrics or ()
    )


def warnings_of(messages: list[tuple[str, str]]) -> list[str] | None:
    """What the compiler warned of, each once; the recompile limit and skipped CUDA graphs have own fields."""
    found = [
        text.strip()[:_TEXT_LIMIT]
        for artifact, text in messages
        if artifact == "warning" and not _LIMIT.search(text) and not _CUDAGRAPH_SKIP.search(text)
    ]
    return list(dict.fromkeys(found))[:_LIST_LIMIT] or None


def cache_bypasses(messages: list[tuple[str, str]]) -> list[str] | None:
    """Why caches refused graphs, each once: "autograd cache: Unsupported autograd function"."""
    found = (_BYPASS.match(text) for artifact, text in messages if artifact == "cache_bypass")
    reasons = (f"{match[1]}: {match[2].strip()}"[:_TEXT_LIMIT] for match in found if match)
    return list(dict.fromkeys(reasons))[:_LIST_LIMIT] or None


def cudagraph_skips(messages: list[tuple[str, str]], counters: dict[str, dict[str, int]]) -> list[str] | None:
    """Reasons why CUDA graphs were not used; from the log, else only that the counter says so."""
    reasons = [match.group(1).strip() for _, text in messages if (match := _CUDAGRAPH_SKIP.search(text))]
    counted = counters.get("inductor", {}).get("cudagraph_skips", 0)
    if not reasons and counted:
        reasons = [f"no reason given ({counted} times)"]
    return [reason[:_TEXT_LIMIT] for reason in dict.fromkeys(reasons)][:_LIST_LIMIT]


def cache_counters(counters: dict[str, dict[str, int]]) -> dict[str, int | None]:
    """Hits, misses and bypasses of the FX graph cache and the AOTAutograd cache; None where a cache was not
    asked.

    A hit is no proof of speed: a portable cache on a CPU hits and still runs g++ again. A bypass is a graph
    that the cache refuses to hold, so that every process compiles it.
    """
    return {
        **_answers("fx_graph", counters.get("inductor", {}), "fxgraph_cache"),
        **_answers("aot_autograd", counters.get("aot_autograd", {}), "autograd_cache"),
    }


def _answers(cache: str, counted: dict[str, int], prefix: str) -> dict[str, int | None]:
    """One cache's counts by the record's names; torch's have `prefix`."""
    names = {f"{cache}_hits": "hit", f"{cache}_misses": "miss", f"{cache}_bypasses": "bypass"}
    was_used = any(f"{prefix}_{answer}" in counted for answer in names.values())
    return {
        name: counted.get(f"{prefix}_{answer}", 0) if was_used else None for name, answer in names.items()
    }


# torch/_inductor/async_compile.py: "name = async_compile.cpp_pybinding([types], r'''source''')", or .triton.
_KERNEL = re.compile(r"= async_compile\.\w+\(.*?'''(.*?)'''", re.DOTALL)
# Before it: headers of a release, and settings that name the device and the caches.
_BODY = re.compile(r"^(extern \"C\"|def \w+\()", re.MULTILINE)
# The function that calls the kernels, from 2.9 on the method of a class, up to what follows it.
_CALL = re.compile(r"^ *def call\(.*?(?=^(?:def |class |runner = |if __name__)|\Z)", re.MULTILINE | re.DOTALL)
_COMMENT = re.compile(r"^\s*(#(?! *pragma)|//).*\n", re.MULTILINE)


def generated_graph(source: str) -> dict[str, Any] | None:
    """`GeneratedGraph` of the record for one module that Inductor wrote; None where it is of no graph."""
    if _CALL.search(source) is None:
        return None
    bodies = _kernels(source)
    whole = "\n".join(bodies).encode()
    return {"hash": hashlib.sha256(whole).hexdigest()[:16], "size_bytes": len(whole), "kernels": len(bodies)}


def generated_source(source: str) -> dict[str, Any] | None:
    """`GeneratedSource` of the record: the kernels and the function that calls them, without comments."""
    graph, call = generated_graph(source), _CALL.search(source)
    if graph is None or call is None:
        return None
    called = _COMMENT.sub("", textwrap.dedent(call.group()))
    text = "\n\n".join([*_kernels(source), called.strip()])
    if len(text) > _SOURCE_LIMIT:
        cut = text[:_SOURCE_LIMIT].rpartition("\n")[0]
        text = f"{cut}\n{text[len(cut) :].count(chr(10))} more lines"
    return {"hash": graph["hash"], "source": text}


def _kernels(source: str) -> list[str]:
    bodies = []
    for text in _KERNEL.findall(source):
        begin = _BODY.search(text)
        bodies.append(_COMMENT.sub("", text[begin.start() :] if begin else text).strip())
    return bodies


def _of_graphs(describe: Callable[[str], dict[str, Any] | None], limit: int) -> list[dict[str, Any]] | None:
    """What `describe` makes of each graph's module, in the order they were written; None where there are
    none, or this release does not tell.
    """
    graphs = []
    for path in generated_modules():
        with contextlib.suppress(OSError, UnicodeDecodeError):
            graphs.append(describe(Path(path).read_text(encoding="utf-8")))
    return [graph for graph in graphs if graph is not None][:limit] or None


def sources() -> list[dict[str, Any]] | None:
    """The code that Inductor wrote, of the first graphs."""
    return _of_graphs(generated_source, _SOURCES)


def autotuned(tunings: list[Tuning] | None) -> list[dict[str, Any]] | None:
    """`AutotunedOperation` of the record for every operation that candidates were timed for; None where none
    were, or this release does not tell.
    """
    counts = Counter((tuning.operation, tuning.inputs) for tuning in tunings or ())
    last = {(tuning.operation, tuning.inputs): tuning for tuning in tunings or ()}
    operations = (_chosen(tuning, counts[key]) for key, tuning in last.items())
    return [each for each in operations if each is not None][:_LIST_LIMIT] or None


def _chosen(tuning: Tuning, count: int) -> dict[str, Any] | None:
    """Inductor takes the fastest. A Triton kernel says itself which one, as it may go on searching from it;
    what it finds then has no time.
    """
    timed = {name: ms for name, ms in tuning.timed_ms.items() if math.isfinite(ms)}
    if not timed:
        return None
    candidate, configuration = min(timed, key=lambda name: timed[name])
    if tuning.kernel is not None:
        configuration = chosen_configuration(tuning.kernel) or configuration
    ms = timed.get((candidate, configuration))
    return {
        "operation": tuning.operation[:_NAME_LIMIT],
        "inputs": tuning.inputs and tuning.inputs[:_TEXT_LIMIT],
        "candidate": candidate[:_NAME_LIMIT],
        "configuration": configuration[:_TEXT_LIMIT] or None,
        "time_ns": None if ms is None else round(ms * 1e6),
        "candidates": len(tuning.timed_ms),
        "count": count,
    }


def facts(
    messages: list[tuple[str, str]],
    tunings: list[Tuning] | None = None,
    *,
    cudagraphs_requested: bool,
) -> dict[str, Any]:
    """`CompilerFacts` of the record. With `graphs` 0 nothing was compiled, whatever else is counted."""
    counted, metrics = counters(), compilation_metrics()
    stats = counted.get("stats", {})
    return {
        "graphs": stats.get("unique_graphs", 0),
        "ops_captured": stats.get("calls_captured", 0),
        "graph_breaks": graph_breaks(messages),
        "break_hints": break_hints(messages),
        "recompiles": recompiles(messages),
        "skipped_frames": skipped_frames(metrics, messages),
        "recompile_limit_hit": recompile_limit_hit(messages, metrics),
        "cudagraph_skips": cudagraph_skips(messages, counted) if cudagraphs_requested else None,
        "cache": cache_counters(counted),
        "warnings": warnings_of(messages),
        "cache_bypasses": cache_bypasses(messages),
        "generated": _of_graphs(generated_graph, _LIST_LIMIT),
        "autotuned": autotuned(tunings),
    }


BACKEND = "compilewatch_explain"
_MOST = 100


class Explained:
    """A backend of `torch.compile` that looks at each graph as Inductor would get it and runs it as it is."""

    def __init__(self) -> None:
        self._operations: Counter[str] = Counter()
        self._fallbacks: Counter[str] = Counter()
        register_capturing_backend(BACKEND, self._look)

    def _look(self, module: torch.fx.GraphModule, _inputs: Any) -> Callable[..., Any]:
        for node in module.graph.nodes:
            if isinstance(node.target, torch._ops.OpOverload):
                name = str(node.target.overloadpacket)
                self._operations[name] += 1
                self._fallbacks[name] += falls_back(node.target)
        return module.forward

    def facts(self) -> dict[str, Any]:
        """Frames as {"function", "location", "operations", "guards"} in the order of their compilation, and
        the operations after decomposition, the most frequent first, with how many of each Inductor
        leaves to ATen.
        """
        return {
            "frames": [
                {
                    "function": entry.co_name,
                    "location": short_location(f"{entry.co_filename}:{entry.co_firstlineno}"),
                    "operations": entry.graph_op_count,
                    "guards": entry.guard_count,
                }
                for entry in (compilation_metrics() or [])[:_MOST]
                if entry.graph_op_count
            ],
            "operations": dict(self._operations.most_common(_MOST)),
            "fallbacks": {name: count for name, count in self._fallbacks.most_common(_MOST) if count},
        }
