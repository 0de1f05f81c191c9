"""Comparable or not: which cases of two sides were measured under the same conditions.

Whether one's own code differs between the sides of a comparison, and what it is called.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
import pandas as pd
from pandas import DataFrame, Index, Series

from compilewatch.db.judge.compare.sides import CODE, as_text, plain_settings
from compilewatch.db.judge.policy import Policy
from compilewatch.db.judge.results import BuildSide, CaseKey, LeftOut
from compilewatch.db.metrics.groups import Ints
from compilewatch.db.records.identity import SHORT_COMMIT
from compilewatch.db.records.ids import identity
from compilewatch.db.records.trial import UNGATED
from compilewatch.db.records.vocabulary import CauseClass, Verdict
from compilewatch.db.units import words

CONDITIONS = (
    *("device", "device_name", "machine", "threads", "workload_version", "task", "batch_size", "shape"),
    *("dtype", "items_per_iteration", "cache", "scope", "timing_method"),
)
"""Columns of a trials frame that must agree before two numbers are compared, beside every single setting."""

GPU_METHODS = ("gated", "cupti", "ungated")
"""How device time is taken. Ungated events hold what the device waits for: never compared with the others."""

_Case = dict[str, Any]
_Name = tuple[str, str]

_SETTING = "settings."
_MACHINE_FIELDS = ("device", "device_name", "machine", "threads")


@dataclass(frozen=True)
class MatchedCases:
    """Cases with trials on both sides on one machine. `trials` are their trials, in time order; `case` says
    which case each belongs to, an index into `keys`. Canary cases are told apart by `canary`.
    """

    machine_id: str | None
    machine: str | None
    keys: tuple[CaseKey, ...]
    canary: tuple[bool, ...]
    trials: DataFrame
    case: Ints
    left_out: tuple[LeftOut, ...]


def match_cases(sides: DataFrame, policy: Policy, machine_id: str | None = None) -> MatchedCases:
    """Match the cases of both sides by machine, workload, strategy and settings, all fields.

    `sides` is a trials frame with column `side`. With `machine_id` None: the machine with most matches. What
    both sides measured under several conditions is compared under one of them (`_one_a_case`).
    """
    exact, texts = pd.factorize(_exact_keys(sides).array, use_na_sentinel=False)
    cases = _case_table(sides, exact, texts.tolist())
    on_side = [{case["exact"] for case in cases if case["side"] == side} for side in (0, 1)]
    both = on_side[0] & on_side[1]
    matched = [case for case in cases if case["exact"] in both and case["side"] == 0]
    if not machine_id:
        counts = Counter(str(case["machine_id"]) for case in matched)
        machine_id = min(counts, key=lambda name: (-counts[name], name), default=None)
    here = _one_a_case([case for case in matched if case["machine_id"] == machine_id], sides, exact, texts)
    here.sort(key=lambda case: (case["workload"], case["strategy"], case["exact"]))
    numbers = {case["exact"]: number for number, case in enumerate(here)}
    case = np.array([numbers.get(text, -1) for text in texts.tolist()], dtype=np.int64)[exact]
    inside = case >= 0
    return MatchedCases(
        machine_id=machine_id,
        machine=str(here[0]["machine"]) if here else None,
        keys=tuple(_case_key(case) for case in here),
        canary=tuple(_is_canary(case, policy) for case in here),
        trials=(sides if inside.all() else sides[inside]).reset_index(drop=True),
        case=case[inside],
        left_out=tuple(
            _left_out([case for case in cases if not _is_canary(case, policy)], set(numbers), both)
        ),
    )


def _one_a_case(matched: list[_Case], sides: DataFrame, exact: Ints, texts: Index) -> list[_Case]:
    """Of matches of one workload and strategy the one that tells most: not of ungated times where there are
    others, then with most trials on its smaller side, then the first by its settings.
    """
    head = sides["side"].to_numpy(dtype=np.int64)
    counts = np.bincount(exact * 2 + head, minlength=2 * len(texts)).reshape(len(texts), 2).min(axis=1)
    trials = dict(zip(texts.tolist(), counts.tolist(), strict=True))
    best: dict[tuple[str, str, str], _Case] = {}
    for case in sorted(
        matched,
        key=lambda case: (case.get("timing_method") == UNGATED, -trials[case["exact"]], case["exact"]),
    ):
        best.setdefault(_ids(case), case)
    return list(best.values())


def _is_canary(case: _Case, policy: Policy) -> bool:
    return fnmatchcase(str(case["workload"]), policy.canary_workloads)


def _exact_keys(sides: DataFrame) -> Series:
    parts = [sides[name].astype("str") for name in ("machine_id", "workload_id", "strategy_id")]
    if "settings" in sides:
        settings = sides["settings"].tolist()
        # Trials of one build share one mapping.
        texts = {id(value): value for value in settings}
        words_of = {key: as_text(plain_settings(value)) for key, value in texts.items()}
        parts.append(Series([words_of[id(value)] for value in settings], index=sides.index, dtype="str"))
    if "timing_method" in sides:
        parts.append(_timing(sides))
    keys = parts[0]
    for part in parts[1:]:
        keys = keys + "|" + part
    return keys


def _timing(sides: DataFrame) -> Series:
    """The method of every trial; of one that failed before it was timed, that of its case's others."""
    methods = [comparable_timing(str(method)) for method in sides["timing_method"].tolist()]
    cases = list(zip(sides["workload_id"].tolist(), sides["strategy_id"].tolist(), strict=True))
    known = {case: method for case, method in zip(cases, methods, strict=True) if method}
    untimed = sides["latency_ns"].isna().tolist()
    filled = [
        known.get(case, "") if never and not method else method
        for case, method, never in zip(cases, methods, untimed, strict=True)
    ]
    return Series(filled, index=sides.index, dtype="str")


def comparable_timing(method: str) -> str:
    """Times of a host's clock compare with those of which nobody knows the method; those of a GPU do not."""
    return method if method in GPU_METHODS else ""


def _case_table(sides: DataFrame, exact: Ints, texts: list[str]) -> list[_Case]:
    """One entry per side and exact case, with its newest labels, in the order of these.

    `exact` is the number of each trial's exact case, an index into `texts`.
    """
    identities = ["side", "machine_id", "workload_id", "strategy_id", "workload", "strategy"]
    named = [*identities, *CONDITIONS, "settings", "strategy_kind", "source_kind", "source_name"]
    named.append("timing_method")
    last = np.full(2 * len(texts), -1)
    last[exact * 2 + sides["side"].to_numpy(dtype=np.int64)] = np.arange(len(sides))  # the last one stays
    newest = np.sort(last[last >= 0])
    columns = {name: sides[name].array.take(newest).tolist() for name in named if name in sides}
    columns["exact"] = [texts[number] for number in exact[newest].tolist()]
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _case_key(case: _Case) -> CaseKey:
    batch, shape = case["batch_size"], case["shape"]
    texts = ("strategy_kind", "task", "dtype", "cache", "source_kind", "source_name", "timing_method")
    texts_of: dict[str, Any] = {name: _text_or_none(case.get(name)) for name in texts}
    texts_of |= {name: str(case[name]) for name in ("workload", "strategy", "workload_id", "strategy_id")}
    texts_of["batch_size"] = None if pd.isna(batch) else int(batch)
    return CaseKey(**texts_of, shape=shape if isinstance(shape, dict) else {})


def _text_or_none(value: object) -> str | None:
    text = as_text(value)
    return None if text == "unknown" else text


def _left_out(cases: list[_Case], here: set[str], both: set[str]) -> Iterator[LeftOut]:
    """Matches on other machines and under further conditions, then base cases without a match, then cases
    that only the head has.
    """
    elsewhere = both - here
    compared = {_ids(case): case for case in cases if case["exact"] in here}
    for case in cases:
        if case["exact"] in elsewhere and case["side"] == 0:
            reason = f"compared on another machine ({case['machine']}); this comparison is for one machine"
            fields: tuple[str, ...] = ("machine",)
            if _ids(case) in compared:
                differing = _differences(case, compared[_ids(case)])
                reason = f"measured otherwise too: {_named(differing)}; the latter is compared"
                fields = tuple(differing)
            yield _entry(case, Verdict.NOT_COMPARABLE, reason, fields)
    unmatched: tuple[dict[_Name, list[_Case]], ...] = ({}, {})
    for case in cases:
        if case["exact"] not in both:
            unmatched[case["side"]].setdefault(_name(case), []).append(case)
    covered: dict[_Name, list[_Case]] = {}
    for case in cases:
        if case["exact"] in here:
            covered.setdefault(_name(case), []).append(case)
    for name, mine in unmatched[0].items():
        others = unmatched[1].get(name)
        for case in mine:
            others = others or _timed_otherwise(case, covered.get(name, ()))
            yield _differing(case, others) if others else _missing(case, name in covered)
    for name, mine in unmatched[1].items():
        if name not in unmatched[0]:
            for case in mine:
                others = _timed_otherwise(case, covered.get(name, ()))
                new = _entry(case, Verdict.NOT_COMPARABLE, "new: base has no such result")
                yield _differing(case, others) if others else new


def _timed_otherwise(case: _Case, compared: Sequence[_Case]) -> list[_Case]:
    """Of the cases `compared` under its name those that differ from `case` in the method of timing alone."""
    return [other for other in compared if [*_differences(case, other)] == ["timing_method"]]


def _ids(case: _Case) -> tuple[str, str, str]:
    """Of machine, workload and strategy."""
    return str(case["machine_id"]), str(case["workload_id"]), str(case["strategy_id"])


def _name(case: _Case) -> _Name:
    return str(case["workload"]), str(case["strategy"])


def _missing(case: _Case, same_name_matched: bool) -> LeftOut:
    size = f" at this size (batch {as_text(case['batch_size'])}, shape {as_text(case['shape'])})"
    where = size if same_name_matched else ""
    return _entry(case, Verdict.MISSING, f"ran on the base side{where}, is missing on the head side")


def condition_name(field: str) -> str:
    """What people call a condition; a setting or variable is named as whoever sets it spells it."""
    if not field.startswith(_SETTING):
        return words(field)
    return field.removeprefix(_SETTING).removeprefix("environment.")


def _differing(case: _Case, others: list[_Case]) -> LeftOut:
    """Names what keeps `case` from its nearest partner: the one with fewest differing fields."""
    nearest = min((_differences(case, other) for other in others), key=len)
    return _entry(case, Verdict.NOT_COMPARABLE, f"differs in {_named(nearest)}", tuple(nearest))


def _named(differences: dict[str, tuple[str, str]]) -> str:
    return ", ".join(
        f"{condition_name(name)} ({old} against {new})" for name, (old, new) in differences.items()
    )


def _differences(case: _Case, other: _Case) -> dict[str, tuple[str, str]]:
    pairs = {name: (as_text(case[name]), as_text(other[name])) for name in CONDITIONS if name in case}
    mine, theirs = (plain_settings(side.get("settings")) for side in (case, other))
    for name in sorted(mine.keys() | theirs.keys()):
        pairs[_SETTING + name] = (as_text(mine.get(name)), as_text(theirs.get(name)))
    if "timing_method" in pairs and len({comparable_timing(each) for each in pairs["timing_method"]}) == 1:
        del pairs["timing_method"]
    named = {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}
    if {"batch_size", "items_per_iteration"} <= named.keys() and _grow_alike(case, other):
        del named["items_per_iteration"]
    if case["machine_id"] == other["machine_id"]:
        named = {name: pair for name, pair in named.items() if name not in _MACHINE_FIELDS}
    elif not any(name in named for name in _MACHINE_FIELDS):
        named["machine_id"] = (str(case["machine_id"]), str(other["machine_id"]))
    for key in ("workload_id", "strategy_id"):
        if not named and case[key] != other[key]:
            named[key] = (str(case[key]), str(other[key]))
    return named


def _grow_alike(case: _Case, other: _Case) -> bool:
    """Whether an iteration has more items for no other reason than a larger batch."""
    sizes = [(each["batch_size"], each["items_per_iteration"]) for each in (case, other)]
    if any(pd.isna(size) for pair in sizes for size in pair):
        return False
    (batch, items), (other_batch, other_items) = sizes
    return bool(items * other_batch == other_items * batch)


def _entry(case: _Case, verdict: Verdict, reason: str, fields: tuple[str, ...] = ()) -> LeftOut:
    return LeftOut(
        workload=str(case["workload"]),
        strategy=str(case["strategy"]),
        verdict=verdict,
        reason=reason,
        fields=fields,
        cause=CauseClass.METHOD if fields else None,
        source_kind=_text_or_none(case.get("source_kind")),
        source_name=_text_or_none(case.get("source_name")),
    )


_COLUMNS = (CODE, "code_hash")


@dataclass
class _Side:
    """What the trials of one case say on one side, without what they do not know."""

    names: set[str] = field(default_factory=set)
    hashes: set[str] = field(default_factory=set)


def same_code(trials: DataFrame, case: Ints, cases: int) -> list[bool | None]:
    """By case: whether the same code of one's own was measured on both sides; None where no side names any.

    `trials` with column `side`, `case` the number of the case of each. Code is the same where commit and
    hash of the imported sources are; a failed trial has no hash, and then the commit tells.
    """
    sides = _sides(trials, case)
    return [_same(*sides[number]) if number in sides else None for number in range(cases)]


def _same(base: _Side, head: _Side) -> bool:
    hashed = base.hashes == head.hashes or not (base.hashes and head.hashes)
    return base.names == head.names and hashed


def _sides(trials: DataFrame, case: Ints) -> dict[int, tuple[_Side, _Side]]:
    if not set(_COLUMNS) <= set(trials.columns) or trials[CODE].isna().all():
        return {}
    sides: dict[int, tuple[_Side, _Side]] = defaultdict(lambda: (_Side(), _Side()))
    known = np.flatnonzero(trials[CODE].notna().to_numpy())
    columns = (trials[name].array.take(known).tolist() for name in (*_COLUMNS, "side"))
    for number, name, source_hash, side in zip(case[known].tolist(), *columns, strict=True):
        of_side = sides[number][side]
        of_side.names.add(name)
        if not pd.isna(source_hash):
            of_side.hashes.add(source_hash)
    return dict(sides)


def with_hashes(
    sides: tuple[BuildSide, BuildSide], trials: DataFrame, case: Ints
) -> tuple[BuildSide, BuildSide]:
    """`sides`, told apart by what was imported where the same commit was measured with other sources."""
    if sides[0].components.get(CODE) != sides[1].components.get(CODE):
        return sides
    differing = [pair for pair in _sides(trials, case).values() if not _same(*pair)]
    if not differing:
        return sides
    base, head = (
        side.model_copy(
            update={"components": side.components | {CODE: _hashed(side, [pair[i] for pair in differing])}}
        )
        for i, side in enumerate(sides)
    )
    return base, head


def _hashed(side: BuildSide, cases: list[_Side]) -> str:
    hashes = sorted(set().union(*(each.hashes for each in cases)))
    shown = hashes[0] if len(hashes) == 1 else identity({"sources": hashes})
    return f"{side.components[CODE]}+{shown[:SHORT_COMMIT]}"
