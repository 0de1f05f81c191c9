"""Why one rank waits for another: what each of several processes that take each step together compiled."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

from compilewatch.db.records.evidence import RankCompile, RankFacts
from compilewatch.db.units import count, duration, plural

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
    said = (
        f"Rank {most.rank} compiled {_times(most)}, rank {fewest.rank} {_times(fewest)}: "
        f"the first difference is {_subject(first.reason)}"
    )
    return said + ("." if first.step is None else f" at step {count(first.step)}.")


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
