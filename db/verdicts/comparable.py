"""Comparable or not: which cases of two sides were measured under the same conditions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase

import numpy as np
import pandas as pd
from pandas import DataFrame, Series

from db.metrics.groups import Ints
from db.verdicts.policy import Policy
from db.verdicts.results import CaseKey, LeftOut
from db.verdicts.sides import as_text
from db.verdicts.vocabulary import CauseClass, Verdict

CONDITIONS = (
    "device",
    "device_name",
    "machine",
    "threads",
    "workload_version",
    "task",
    "batch_size",
    "shape",
    "dtype",
    "items_per_iteration",
    "cache",
    "scope",
    "settings",
)
"""Columns of a trials frame that must agree before two numbers are compared, as far as the frame has them."""

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

    `sides` is a trials frame with column `side`. With `machine_id` None: the machine with most matches.
    """
    exact = _exact_keys(sides)
    table = _case_table(sides, exact)
    both = table.groupby("exact")["side"].nunique() == 2
    matched = table[table["exact"].map(both) & (table["side"] == 0)]
    machine_id = machine_id or _busiest(matched["machine_id"])
    here = matched[matched["machine_id"] == machine_id].sort_values(["workload", "strategy"])
    numbers = {key: number for number, key in enumerate(here["exact"])}
    case = exact.map(numbers)
    inside = case.notna().to_numpy()
    return MatchedCases(
        machine_id=machine_id,
        machine=str(here["machine"].iloc[0]) if len(here) else None,
        keys=tuple(_case_key(row) for _, row in here.iterrows()),
        canary=tuple(fnmatchcase(str(name), policy.canary_workloads) for name in here["workload"]),
        trials=sides[inside].reset_index(drop=True),
        case=case[inside].to_numpy(dtype=np.int64),
        left_out=tuple(_left_out(table, set(here["exact"]), both, machine_id)),
    )


def _exact_keys(sides: DataFrame) -> Series:
    parts = [sides[name].astype("str") for name in ("machine_id", "workload_id", "strategy_id")]
    if "settings" in sides:
        parts.append(sides["settings"].map(as_text))
    keys = parts[0]
    for part in parts[1:]:
        keys = keys + "|" + part
    return keys


def _case_table(sides: DataFrame, exact: Series) -> DataFrame:
    """One row per side and exact case, with its newest labels."""
    labelled = sides.assign(exact=exact)
    return labelled.drop_duplicates(["side", "exact"], keep="last").reset_index(drop=True)


def _busiest(machines: Series) -> str | None:
    counts = Counter(machines)
    return min(counts, key=lambda name: (-counts[name], name)) if counts else None


def _case_key(row: Series) -> CaseKey:
    batch, shape = row["batch_size"], row["shape"]
    return CaseKey(
        workload=str(row["workload"]),
        strategy=str(row["strategy"]),
        workload_id=str(row["workload_id"]),
        strategy_id=str(row["strategy_id"]),
        task=_text_or_none(row["task"]),
        batch_size=None if pd.isna(batch) else int(batch),
        shape=shape if isinstance(shape, dict) else {},
        dtype=_text_or_none(row["dtype"]),
        cache=_text_or_none(row["cache"]),
    )


def _text_or_none(value: object) -> str | None:
    text = as_text(value)
    return None if text == "unknown" else text


def _left_out(table: DataFrame, matched: set[str], both: Series, machine_id: str | None) -> Iterable[LeftOut]:
    """Base cases without a match first, then cases that only the head has."""
    elsewhere = table["exact"].map(both) & (table["machine_id"] != machine_id) & (table["side"] == 0)
    for _, row in table[elsewhere].iterrows():
        reason = f"compared on another machine ({row['machine']}); this comparison is for one machine"
        yield _entry(row, Verdict.NOT_COMPARABLE, reason, ("machine",))
    open_cases = table[~table["exact"].map(both)]
    partners = {
        side: dict(list(open_cases[open_cases["side"] == side].groupby(["workload", "strategy"])))
        for side in (0, 1)
    }
    known = table[table["exact"].isin(matched)]
    covered = set(zip(known["workload"], known["strategy"], strict=True))
    for name, rows in partners[0].items():
        other = partners[1].get(name)
        for _, row in rows.iterrows():
            yield _missing(row, name in covered) if other is None else _differing(row, other)
    for name, rows in partners[1].items():
        if name not in partners[0]:
            for _, row in rows.iterrows():
                yield _entry(row, Verdict.NOT_COMPARABLE, "new on the head side: base has no such result")


def _missing(row: Series, same_name_matched: bool) -> LeftOut:
    size = f" at this size (batch {as_text(row['batch_size'])}, shape {as_text(row['shape'])})"
    where = size if same_name_matched else ""
    return _entry(row, Verdict.MISSING, f"ran on the base side{where}, is missing on the head side")


def _differing(row: Series, candidates: DataFrame) -> LeftOut:
    """Names what keeps `row` from its nearest candidate: the one with fewest differing fields."""
    differences = [_differences(row, other) for _, other in candidates.iterrows()]
    nearest = min(differences, key=len)
    reason = "differs in " + ", ".join(
        f"{name} ({old} against {new})" for name, (old, new) in nearest.items()
    )
    return _entry(row, Verdict.NOT_COMPARABLE, reason, tuple(nearest))


def _differences(row: Series, other: Series) -> dict[str, tuple[str, str]]:
    named = {
        name: (as_text(row[name]), as_text(other[name]))
        for name in CONDITIONS
        if name in row and as_text(row[name]) != as_text(other[name])
    }
    if row["machine_id"] == other["machine_id"]:
        named = {name: pair for name, pair in named.items() if name not in _MACHINE_FIELDS}
    elif not any(name in named for name in _MACHINE_FIELDS):
        named["machine_id"] = (str(row["machine_id"]), str(other["machine_id"]))
    if not named and row["workload_id"] != other["workload_id"]:
        named["workload_id"] = (str(row["workload_id"]), str(other["workload_id"]))
    if not named and row["strategy_id"] != other["strategy_id"]:
        named["strategy_id"] = (str(row["strategy_id"]), str(other["strategy_id"]))
    return named


def _entry(row: Series, verdict: Verdict, reason: str, fields: tuple[str, ...] = ()) -> LeftOut:
    return LeftOut(
        workload=str(row["workload"]),
        strategy=str(row["strategy"]),
        verdict=verdict,
        reason=reason,
        fields=fields,
        cause=CauseClass.METHOD if fields else None,
    )
