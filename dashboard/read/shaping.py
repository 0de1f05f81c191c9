"""Labels that tell things apart, and history as rows: pure steps between frames of `db` and charts."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas import DataFrame

from compilewatch.db import units
from compilewatch.db.judge.compare.sides import CODE, LIBRARIES, changed_libraries, libraries_of
from compilewatch.db.metrics.groups import row_dicts
from compilewatch.db.queries.case_parts import PHASES
from compilewatch.db.records.identity import component_name
from compilewatch.db.records.strategies import BUILTIN, not_applicable_reason
from compilewatch.db.records.trial import CacheState, origin_mark

# What a build is made of, in the order in which a difference is told.
BUILD_COMPONENTS = (
    "torch",
    "torch_variant",
    "torch_git",
    "cuda",
    "driver",
    "triton",
    "cudnn",
    "python",
    "os",
    "compiler",
)
# Components that change with every torch release and so never stand beside it as a second cause.
_CARRIED_BY_TORCH = frozenset({"torch_git", "triton", "torch_variant"})
# Which component tells two builds of one torch apart first.
_NAMING_ORDER = (
    "torch_variant",
    "driver",
    "cuda",
    "triton",
    "cudnn",
    "python",
    "os",
    "compiler",
    "torch_git",
)
_WORKLOAD_PARTS = ("batch_size", "dtype", "shape", "task")
NAMING_COLUMNS = [
    *("workload_id", "workload", "workload_version", *_WORKLOAD_PARTS),
    *("source_kind", "source_name"),
]
"""What `with_labels` reads."""


@dataclass(frozen=True)
class Change:
    """One component of a build that differs: its name and both values, empty where there is none."""

    component: str
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.component} {self.before or 'none'} → {self.after or 'none'}"


def number(value: object) -> float | None:
    """A value of a nullable column as a float, None where it is missing."""
    if value is None or value is pd.NA:
        return None
    value_as_float = float(str(value))
    return None if math.isnan(value_as_float) else value_as_float


def with_labels(frame: pd.DataFrame) -> pd.DataFrame:
    """`frame` with `workload_label`: the short name, and sizes, task or version where that is not unique.

    What was imported says so and from where: its numbers were taken by other means than one's own.
    """
    # The few columns that tell workloads apart, once per workload: frames of points have ninety.
    of_row, ids = frame["workload_id"].array.factorize()
    _, first = np.unique(of_row, return_index=True)
    known = [frame[name].array.take(first).tolist() for name in NAMING_COLUMNS]
    by_name: dict[str, list[dict[str, Any]]] = {}
    for row in (dict(zip(NAMING_COLUMNS, values, strict=True)) for values in zip(*known, strict=True)):
        by_name.setdefault(str(row["workload"]), []).append(row)
    labels: dict[str, str] = {}
    for name, rows in by_name.items():
        telling = [part for part in _WORKLOAD_PARTS if len({_words(row[part]) for row in rows}) > 1]
        sized = [
            " ".join([name, *filter(None, (_sized(part, row[part]) for part in telling))]) for row in rows
        ]
        # Nothing for what was measured; an imported workload has a version of its own, and so one origin.
        origins = [origin_mark(row["source_kind"], row["source_name"]) for row in rows]
        texts = [f"{text}{origin}" for text, origin in zip(sized, origins, strict=True)]
        if len(set(texts)) < len(texts):
            texts = [f"{text} @{row['workload_version']}" for text, row in zip(texts, rows, strict=True)]
        if len(set(texts)) < len(texts):
            texts = [f"{text} {row['workload_id'][:6]}" for text, row in zip(texts, rows, strict=True)]
        labels |= {row["workload_id"]: text for text, row in zip(texts, rows, strict=True)}
    return frame.assign(workload_label=pd.array([labels[key] for key in ids], dtype="str").take(of_row))


def labels_of(frame: pd.DataFrame) -> dict[str, str]:
    """Workload id -> label, of a frame that `with_labels` made."""
    return dict(zip(frame["workload_id"], frame["workload_label"], strict=True))


def _words(value: object) -> str:
    if isinstance(value, dict):
        return "x".join(str(size) for size in value.values())
    missing = value is None or value is pd.NA or (isinstance(value, float) and math.isnan(value))
    return "" if missing else str(value)


def _sized(part: str, value: object) -> str:
    """Empty for what is not known."""
    words = _words(value)
    return f"b{words}" if words and part == "batch_size" else words


def build_names(builds: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Build id -> a name that is unique among `builds`: torch, and in brackets its label and what tells it
    from the others of its torch: "torch 2.11.0 (skip_cudnn=1)".
    """
    names: dict[str, str] = {}
    by_torch: dict[str, list[Mapping[str, Any]]] = {}
    for row in builds:
        by_torch.setdefault(_words(row["torch"]), []).append(row)
    for torch, group in by_torch.items():
        parts = {row["build_id"]: tuple(filter(None, (_words(row["build_label"]),))) for row in group}
        telling = _telling_values(group)
        while len(set(parts.values())) < len(parts) and (values := next(telling, None)):
            parts = {key: (*words, *filter(None, (values[key],))) for key, words in parts.items()}
        names |= {
            key: f"torch {torch} ({', '.join(words)})" if words else f"torch {torch}"
            for key, words in parts.items()
        }
    uses = Counter(names.values())
    return {key: name if uses[name] == 1 else f"{name} {key[:6]}" for key, name in names.items()}


def _telling_values(builds: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, str]]:
    """Per component that differs among `builds`, and then per package: build id -> its words.

    What a build does not state is left out: the names differ by it all the same.
    """
    for part in _NAMING_ORDER:
        values = {row["build_id"]: _words(row[part]) for row in builds}
        if len(set(values.values())) > 1:
            prefix = "" if part == "torch_variant" else f"{units.words(part)} "
            yield {key: f"{prefix}{value}" if value else "" for key, value in values.items()}
    stored = {row["build_id"]: row["packages"] or {} for row in builds}
    for name in sorted({name for mapping in stored.values() for name in mapping}):
        values = {key: _stated(mapping.get(name)) for key, mapping in stored.items()}
        if len(set(values.values())) > 1:
            yield {key: f"{name} {value}" if value else "" for key, value in values.items()}


def flat(mapping: Mapping[str, Any]) -> dict[str, Any]:
    """`mapping` with the entries of mappings inside it in their place."""
    leaves: dict[str, Any] = {}
    for name, value in mapping.items():
        leaves |= flat(value) if isinstance(value, dict) else {name: value}
    return leaves


def _stated(value: object) -> str:
    """The version of a package, cut short; empty where it is not stated."""
    text = "" if value is None else str(value)
    return text if len(text) <= 24 else f"{text[:23]}…"


def build_changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Change]:
    """What differs between two rows with the columns of a build, and in one's own code; a column that one
    lacks is no change.
    """
    changes = []
    for part in (*BUILD_COMPONENTS, CODE):
        if part not in before or part not in after:
            continue
        old, new = _words(before[part]), _words(after[part])
        if old != new:
            changes.append(Change(component_name(part), old, new))
    libraries = (before.get(LIBRARIES), after.get(LIBRARIES))
    for name in changed_libraries(*libraries):
        old, new = (_words(libraries_of(each)[name]) for each in libraries)
        changes.append(Change(name, old, new))
    return changes


def confounded(changes: Sequence[Change]) -> bool:
    """Whether more than one thing changed that could each be the cause."""
    causes = {change.component for change in changes} - {units.words(part) for part in _CARRIED_BY_TORCH}
    return len(causes) > 1


ASIDE_COLUMNS = [
    *(
        "workload_label",
        "strategy",
        "status",
        "failure_kind",
        "trials",
        "failed_trials",
        "wild_trials",
        "nothing_compiled",
    )
]


@dataclass(frozen=True)
class Aside:
    """A case that has no number, and why: shown beside the numbers, never as a zero."""

    workload: str
    strategy: str
    reason: str

    def __str__(self) -> str:
        return f"{self.workload} with {self.strategy}: {self.reason}"


def asides(cases: pd.DataFrame) -> list[Aside]:
    """Failed cases, cases with failed or wild trials, and cases in which nothing was compiled.

    `cases` has the columns `ASIDE_COLUMNS`.
    """
    return [
        Aside(case["workload_label"], case["strategy"], reason)
        for case in row_dicts(cases[ASIDE_COLUMNS])
        if (reason := _aside_reason(case))
    ]


def _aside_reason(case: dict[str, Any]) -> str:
    if case["status"] not in ("failed", "mixed") and not case["nothing_compiled"]:
        wild, trials = case["wild_trials"], units.plural(case["trials"], "trial")
        return f"{units.count(wild)} of {trials} set aside: its time is wild" if wild else ""
    kind = units.words(_words(case["failure_kind"]))
    why = f" ({kind})" if kind else ""
    total, failed = units.plural(case["trials"], "trial"), units.count(case["failed_trials"])
    if case["status"] == "failed":
        return f"failed in {'its only trial' if case['trials'] == 1 else f'all {total}'}{why}"
    if case["status"] == "mixed":
        return f"{failed} of {total} failed{why}; the numbers are of the others"
    return "nothing was compiled: the graph count is 0, so this is eager's speed"


def joined(items: Iterable[str]) -> str:
    """`items` as a list in a sentence, cut after three."""
    everything = list(items)
    if len(everything) > 3:
        return units.first_of(everything, 3)
    return " and ".join([", ".join(everything[:-1]), everything[-1]] if len(everything) > 1 else everything)


def not_applicable(cases: pd.DataFrame, requested: set[str]) -> dict[str, str]:
    """Built-in strategies that mean nothing on the device of `cases` and were not measured there, with why.

    With `requested` only those among it.
    """
    measured = set(cases["strategy"])
    device = str(cases["device"].iloc[0])
    return {
        name: reason
        for name, strategy in BUILTIN.items()
        if name not in measured
        and (not requested or name in requested)
        and (reason := not_applicable_reason(strategy, device)) is not None
    }


def with_caches(cases: pd.DataFrame, chosen: Sequence[str]) -> pd.DataFrame:
    """Rows of the chosen cache states, and those that have none, as eager; all for none chosen."""
    return cases[cases["cache"].isin([*chosen, CacheState.NONE.value])] if chosen else cases


def newest_builds(rows: pd.DataFrame, moment: str) -> tuple[str, ...]:
    """The builds of `rows`, that of the latest `moment` first."""
    return tuple(dict.fromkeys(rows.sort_values(moment, ascending=False)["build_id"]))


class ColdStarts(NamedTuple):
    """The case of each trial, and in a row for each the nanoseconds of `db.queries.case_parts.PHASES`.

    A phase that was not measured has 0.
    """

    trials: DataFrame
    phase_ns: NDArray[np.int64]


def with_phases(trials: DataFrame, phases: Mapping[str, Sequence[int]]) -> ColdStarts:
    """`phases` by trial id; a trial that is gone meanwhile has none."""
    unmeasured = [0] * len(PHASES)
    rows = [phases.get(trial_id, unmeasured) for trial_id in trials["trial_id"].tolist()]
    phase_ns = np.array(rows, dtype=np.int64).reshape(-1, len(PHASES))
    return ColdStarts(trials[["workload_id", "strategy_id", "strategy", "cache"]], phase_ns)
