"""What a reader must know of a trial before using its figures, the most important first.

One order for every door: the run's table says the first, `show` and the page Trial say all, the comment of a
comparison those of its cases.

Why one rank waits for another: what each of several processes that take each step together compiled.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from compilewatch.db.errors import one_line
from compilewatch.db.records.evidence import (
    CacheCounters,
    CompilerFacts,
    Memory,
    Numerics,
    NumericsStatus,
    RankCompile,
    RankFacts,
)
from compilewatch.db.records.sampling_facts import SamplingFacts
from compilewatch.db.records.trial import StrategyKind, Trial
from compilewatch.db.units import count, duration, percent, plural, size, words

LONGER = 1.25
"""From this ratio on one rank's time is longer than another's, as far as anybody waits for it."""
# torch/csrc/dynamo/guards.cpp: "tensor 'args[0]' size mismatch at index 0. expected 8, actual 16".
_SIZE = re.compile(
    r"tensor '(?:L\['(\w+)'\]|([^']+))' size mismatch at index (\d+)\. expected (\d+), actual (\d+)"
)


def ranks_sentence(ranks: Sequence[RankFacts]) -> str | None:
    """Which rank the others wait for, and why; None for fewer than two ranks."""
    if len(ranks) < 2:
        return None
    if (why := why_waiting(ranks)) is not None:
        return why
    compiles = ranks[0].compiles
    if compiles is None or any(each.compiles is None for each in ranks):
        return "What each rank compiled is not known."
    return f"No rank waits for another: {plural(len(compiles), 'compilation')} each."


def why_waiting(ranks: Sequence[RankFacts]) -> str | None:
    """The same; None too where no rank waits for another."""
    return _by_compilations(ranks) or _by("compile_ns", ranks) or _by("cpu_ns", ranks)


def _by_compilations(ranks: Sequence[RankFacts]) -> str | None:
    known = [each for each in ranks if each.compiles is not None]
    if len(known) < 2:
        return None
    most = max(known, key=lambda each: len(each.compiles or ()))
    fewest = min(known, key=lambda each: len(each.compiles or ()))
    first = _first_difference(most.compiles or (), fewest.compiles or ())
    if first is None:
        return None
    sentence = (
        f"Rank {most.rank} compiled {_times(most)}, rank {fewest.rank} {_times(fewest)}: "
        f"the first difference is {_subject(first.reason)}"
    )
    return sentence + ("." if first.step is None else f" at step {count(first.step)}.")


def _first_difference(more: Sequence[RankCompile], fewer: Sequence[RankCompile]) -> RankCompile | None:
    """The first compilation of one that the other has not; None where they have equally many."""
    if len(more) == len(fewer):
        return None
    others = Counter((each.step, each.part) for each in fewer)
    for each in more:
        others[each.step, each.part] -= 1
        if others[each.step, each.part] < 0:
            return each
    return None


def _times(rank: RankFacts) -> str:
    times = len(rank.compiles or ())
    return {0: "never", 1: "once"}.get(times, f"{count(times)} times")


def _subject(reason: str | None) -> str:
    """What a guard that failed is about: "size 0 of args[0] (8, then 16)"."""
    if reason is None:
        return "a function that only it compiles"
    size = _SIZE.search(reason)
    if size is None:
        return reason
    return f"size {size[3]} of {size[1] or size[2]} ({size[4]}, then {size[5]})"


_TIMES = {"compile_ns": "compiles", "cpu_ns": "computes"}


def _by(figure: str, ranks: Sequence[RankFacts]) -> str | None:
    values = [(value, each.rank) for each in ranks if (value := getattr(each, figure)) is not None]
    if len(values) < 2:
        return None
    (least, fast), (longest, slow) = min(values), max(values)
    if longest <= LONGER * least:
        return None
    each = "" if figure == "compile_ns" else " a step"
    return (
        f"Rank {slow} {_TIMES[figure]} {duration(longest)}{each}, rank {fast} {duration(least)}: "
        f"rank {fast} waits for it."
    )


def rank_rows(ranks: Sequence[RankFacts]) -> list[dict[str, Any]]:
    """A row for each rank: compilations, time in them, median step and CPU time of it."""
    return [
        {
            "rank": each.rank,
            "steps": each.steps,
            "compilations": None if each.compiles is None else len(each.compiles),
            "compile": each.compile_ns,
            "step": each.latency_ns,
            "cpu": each.cpu_ns,
        }
        for each in ranks
    ]


def rank_texts(ranks: Sequence[RankFacts]) -> list[tuple[str, str]]:
    """The sentence, and a line for each rank; nothing for fewer than two."""
    sentence = ranks_sentence(ranks)
    if sentence is None:
        return []
    return [("ranks", sentence), *((f"  rank {each.rank}", _line(each)) for each in ranks)]


def _line(rank: RankFacts) -> str:
    times = plural(len(rank.compiles), "compilation") if rank.compiles is not None else "compilations unknown"
    parts = [times + ("" if rank.compile_ns is None else f" in {duration(rank.compile_ns)}")]
    if rank.latency_ns is not None:
        parts.append(f"{duration(rank.latency_ns)} a step")
    if rank.cpu_ns is not None:
        parts.append(f"{duration(rank.cpu_ns)} of CPU time")
    return ", ".join(parts)


MANY_OPERATIONS = 1000
"""Captured operations from which on capturing and compiling them is most of what a start costs."""
WELL_KNOWN = 0.10
"""Half the width of the interval over the median, above which a median says little."""
PAYS_BELOW_PERCENT = 70
"""Of the time in which a GPU is busy with an eager step, below which torch.compile is commonly said
to be likely to pay. How often that is right: `compilewatch list cases --columns gpu_utilization`."""
LONGEST_REASON = 500
"""Characters of a reason that people give for a workload or strategy."""
_LONGEST_TEXT = 120
_FROM_CACHE = ("warm", "portable", "packaged")


@dataclass(frozen=True)
class Parts:
    """What of a trial the notes are made of; None for what it does not have."""

    cache: str
    compiler: CompilerFacts | None = None
    numerics: Numerics | None = None
    sampling: SamplingFacts | None = None
    memory: Memory | None = None
    kind: StrategyKind = StrategyKind.COMPILE


def trial_notes(trial: Trial) -> list[str]:
    """All notes of one trial, then why its workload and strategy are set up so."""
    named = (trial.workload.name, trial.workload.reason), (trial.strategy.name, trial.strategy.reason)
    return [*notes_of(parts_of(trial)).values(), *reasons(named)]


def reasons(named_reasons: Iterable[tuple[str, str | None]]) -> list[str]:
    """Of workloads and strategies by name the reason that people gave, where they gave one, each once."""
    on_a_line = ((name, " ".join(text.split())) for name, text in named_reasons if text)
    return list(dict.fromkeys(f"why {name}: {one_line(text, LONGEST_REASON)}" for name, text in on_a_line))


def parts_of(trial: Trial) -> Parts:
    cache = trial.strategy.cache.value
    kind = trial.strategy.kind
    return Parts(cache, trial.compiler, trial.numerics, trial.sampling, trial.memory, kind)


def case_notes(trials: Sequence[Parts]) -> list[str]:
    """Those of a case: each once, as its first trial has it, with how many of several trials have it."""
    found = [notes_of(each) for each in trials]
    kinds = Counter(kind for notes in found for kind in notes)
    texts: dict[str, str] = {}
    for notes in found:
        texts = notes | texts
    of = f" of {count(len(trials))} trials)"
    return [
        texts[kind] + ("" if kinds[kind] == len(trials) else f" ({count(kinds[kind])}{of}")
        for kind in _RANKED
        if kind in texts
    ]


def notes_of(parts: Parts) -> dict[str, str]:
    """By their kinds, in the order of `_RANKED`."""
    compiler, found = parts.compiler, dict[str, str]()
    if compiler is not None:
        found |= _of_compiler(compiler) | _of_cache(compiler, parts.cache)
    if parts.kind is not StrategyKind.COMPILE:
        # A program that is exported or packaged has no graph of Dynamo's.
        found.pop("nothing", None)
    if parts.numerics is not None:
        found |= _of_numerics(parts.numerics)
    growth = None if parts.memory is None else parts.memory.growth_bytes_per_call
    if growth:
        found["growth"] = f"the process grows by {size(growth)} a call"
    pools = None if parts.memory is None else parts.memory.graph_pool_bytes
    if pools:
        found["pools"] = f"its peak memory has {size(pools)} of whole CUDA graph pools, eager's only tensors"
    state = None if parts.sampling is None else parts.sampling.state
    if state is not None and state.first_length is not None and state.last_length is not None:
        lengths = f"{count(state.first_length)} to {count(state.last_length)} {state.unit}"
        found["state"] = f"its state grows, timed at {lengths} of {state.name}"
    if state is not None and state.fails_at is not None:
        found["full"] = f"its state is full at call {count(state.fails_at)}, put back before each block"
    reached = None if parts.sampling is None else parts.sampling.reached_interval
    if reached is not None and reached > WELL_KNOWN:
        found["imprecise"] = f"median known to ±{percent(reached)} only"
    return {kind: found[kind] for kind in _RANKED if kind in found}


_RANKED = (
    *(
        "limit",
        "nothing",
        "losses",
        "ranks",
        "compiled",
        "recompiles",
        "numerics",
        "not_compared",
        "state",
        "full",
        "growth",
        "imprecise",
        "pools",
    ),
    *("skipped", "warnings", "missed", "bypassed", "operations"),
)


def _of_compiler(facts: CompilerFacts) -> dict[str, str]:
    found = {}
    events = sorted(facts.recompiles or (), key=lambda event: -event.count)
    total = sum(event.count for event in events)
    times = plural(total, "recompile") + (f", most on {_short(events[0].reason)}" if events else "")
    if facts.recompile_limit_hit:
        found["limit"] = f"recompile limit hit after {times}: eager since"
    elif total:
        found["recompiles"] = times
    if (waiting := why_waiting(facts.ranks or ())) is not None:
        found["ranks"] = waiting[0].lower() + waiting[1:].rstrip(".")
    if facts.graphs == 0:
        found["nothing"] = "nothing compiled"
    elif facts.compiled_share == 0:
        found["nothing"] = "nothing ran compiled in a timed step, only eager's operators"
    if facts.already_compiled:
        listed = _listed(facts.already_compiled)
        found["compiled"] = f"compiled already: {listed}; eager runs it as it is written"
    if facts.skipped_frames:
        first = _short(facts.skipped_frames[0])
        found["skipped"] = f"{plural(len(facts.skipped_frames), 'skipped frame')}: {first}"
    if facts.warnings:
        found["warnings"] = f"torch warns: {_listed(facts.warnings)}"
    if (facts.ops_captured or 0) >= MANY_OPERATIONS:
        found["operations"] = f"{count(facts.ops_captured)} captured operations"
    return found


def _of_cache(facts: CompilerFacts, state: str) -> dict[str, str]:
    cache, found = facts.cache or CacheCounters(), {}
    hits = {"FX graph": cache.fx_graph_hits, "AOTAutograd": cache.aot_autograd_hits}
    misses = {"FX graph": cache.fx_graph_misses, "AOTAutograd": cache.aot_autograd_misses}
    refused = {"FX graph": cache.fx_graph_bypasses, "AOTAutograd": cache.aot_autograd_bypasses}
    if state in _FROM_CACHE and any(misses.values()):
        found["missed"] = f"the {state} start missed: {_answers(misses, 'miss')}, {_answers(hits, 'hit')}"
    if any(refused.values()):
        why = f" ({_listed(facts.cache_bypasses)})" if facts.cache_bypasses else ""
        graphs = sum(filter(None, refused.values()))
        caches = " and ".join(name for name, number in refused.items() if number)
        found["bypassed"] = f"{plural(graphs, 'graph')} that the {caches} cache cannot hold{why}"
    return found


def _answers(answers: dict[str, int | None], noun: str) -> str:
    known = ((name, number) for name, number in answers.items() if number is not None)
    return ", ".join(f"{name} cache {plural(number, noun)}" for name, number in known)


_NUMERICS = {
    NumericsStatus.NOT_CHECKED: "numerics not checked",
    NumericsStatus.DEGENERATE: "numerics not known: the output is near zero everywhere",
    NumericsStatus.EAGER_TWO_RUNS_DIFFER: "numerics not known: two eager runs differ",
    NumericsStatus.FAIL: "wrong result",
}


def _of_numerics(numerics: Numerics) -> dict[str, str]:
    why = f": {numerics.reason}" if numerics.reason else ""
    found = {"numerics": text + why} if (text := _NUMERICS.get(numerics.status)) else {}
    if numerics.training is not None and numerics.training.left_at_step is not None:
        path = numerics.training
        found["losses"] = f"its training leaves eager's at step {path.left_at_step} by {path.left_by}"
    if numerics.not_compared:
        listed = _listed(numerics.not_compared)
        found["not_compared"] = f"not compared: {listed}"
        if numerics.status is NumericsStatus.REPRODUCIBLE:
            found["not_compared"] = f"{listed} not compared with eager"
    return found


def _listed(texts: Sequence[str]) -> str:
    more = f" and {count(len(texts) - 1)} more" if len(texts) > 1 else ""
    return _short(texts[0]) + more


def _short(text: str) -> str:
    return one_line(text.partition("\n")[0].strip(), _LONGEST_TEXT)


def compiled_texts(facts: CompilerFacts) -> Iterable[tuple[str, str]]:
    """How much of a step runs compiled, and whether CUDA graphs do it: "ran compiled", "85 % of eager's
    operators, 97 % of the time".
    """
    if facts.compiled_share is not None:
        time = facts.compiled_time_share
        of_time = "" if time is None else f", {percent(time)} of the time"
        yield "ran compiled", f"{percent(facts.compiled_share)} of eager's operators{of_time}"
    if facts.recompile_limit_hit:
        yield "recompile limit", "hit: what reached it runs eagerly since"
    if facts.cudagraph_launches is not None:
        yield "CUDA graphs", f"{plural(facts.cudagraph_launches, 'launch')} a step"
    if facts.cudagraph_skips:
        yield "CUDA graphs skipped", "; ".join(map(_short, facts.cudagraph_skips))


def utilization_text(utilization: float, *, eager: bool) -> str:
    """ "43 %, below 70 %: compiling is likely to pay": the rule is one of eager."""
    rule = f", below {PAYS_BELOW_PERCENT} %: compiling is likely to pay"
    applies = eager and utilization < PAYS_BELOW_PERCENT
    return percent(utilization / 100) + (rule if applies else "")


def cache_texts(facts: CompilerFacts) -> Iterable[tuple[str, str]]:
    """What each cache answered, and why it refused graphs: "FX graph cache", "2 hits, 0 misses"."""
    cache = facts.cache or CacheCounters()
    for name, hits, misses, refused in (
        ("FX graph cache", cache.fx_graph_hits, cache.fx_graph_misses, cache.fx_graph_bypasses),
        (
            *("AOTAutograd cache", cache.aot_autograd_hits),
            *(cache.aot_autograd_misses, cache.aot_autograd_bypasses),
        ),
    ):
        if (hits, misses, refused) == (None, None, None):
            continue
        text = f"{plural(hits or 0, 'hit')}, {plural(misses or 0, 'miss')}"
        text += f", {count(refused)} it cannot hold" if refused else ""
        yield name, text
    for reason in facts.cache_bypasses or ():
        yield "cache bypassed", words(_short(reason))
