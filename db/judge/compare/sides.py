"""Which trials make the two sides of a comparison."""

from __future__ import annotations

import json
from collections import defaultdict
from operator import le
from typing import Any

import numpy as np
import pandas as pd
from pandas import DataFrame, Series

from compilewatch.db.errors import CompilewatchError
from compilewatch.db.judge.results import BuildSide
from compilewatch.db.metrics.groups import Ints
from compilewatch.db.records.fields import Closed
from compilewatch.db.records.trial import FailureKind

STACK = ("torch", "torch_variant", "cuda", "driver", "triton", "cudnn", "python", "os", "compiler")
"""Parts of a build that a trials frame may name, in the order people read them."""

CODE = "code"
"""The commit of the workload's own code: a component like those of the build."""

SEVERAL = " / "
"""Between the versions of a component of which a side has several."""

LIBRARIES = "packages"
"""The column with the libraries of a build: versions by name, each a component of its own."""

COMPONENTS = (*STACK, CODE)
"""What may differ between two sides and be named as what changed, beside the libraries."""

_OF_THE_BUILD = ("cpu_capability", "environment.LD_LIBRARY_PATH")
"""Settings of which another value belongs to the build that is compared: what torch finds out by itself, and
where its libraries lie.
"""

COMPILE_THREADS = "compile_threads"
"""The setting with how many threads the process compiles."""

METHOD_SETTINGS = (
    COMPILE_THREADS,
    "environment.MALLOC_MMAP_THRESHOLD_",
    "environment.MALLOC_TRIM_THRESHOLD_",
)
"""Settings by which a trial is measured in another way than before: as a plain process is, or not."""

NOT_THE_BUILDS_FAULT = (
    FailureKind.CANCELLED,
    FailureKind.DISK_FULL,
    FailureKind.DEVICE_LOST,
    FailureKind.BAD_RECORD,
    FailureKind.HARNESS,
)
"""Failures that say nothing about a build: the trial counts as not run."""


class VerdictError(CompilewatchError):
    """Nothing can be judged: a side is empty, or both sides are the same trials."""


class Selection(Closed):
    """Which trials make one side: those of any of `build_ids`, those of any of `run_ids`, or of both kinds
    at once where both are given.
    """

    name: str
    build_ids: tuple[str, ...] = ()
    run_ids: tuple[str, ...] = ()

    def mask(self, trials: DataFrame) -> Series:
        """One flag per trial. Raises VerdictError when the selection selects by nothing."""
        if not self.build_ids and not self.run_ids:
            raise VerdictError(f"{self.name} names no build and no run.", "See `compilewatch list builds`.")
        chosen = Series(data=True, index=trials.index)
        if self.build_ids:
            chosen &= trials["build_id"].isin(self.build_ids)
        if self.run_ids:
            chosen &= trials["run_id"].isin(self.run_ids)
        return chosen


def as_selection(side: Selection | str) -> Selection:
    """`side` as it is, or the build of that id."""
    return Selection(name=side, build_ids=(side,)) if isinstance(side, str) else side


def split_sides(trials: DataFrame, base: Selection, head: Selection) -> DataFrame:
    """The trials of both sides, with column `side` (0 base, 1 head), in time order.

    Trials that failed for reasons outside the build are dropped. Raises VerdictError when a side is empty
    or a trial is in both.
    """
    in_base, in_head = base.mask(trials), head.mask(trials)
    if (in_base & in_head).any():
        raise VerdictError(
            f"{base.name} and {head.name} are the same trials.", "Choose two builds or two runs that differ."
        )
    outside = trials["failure_kind"].isin([kind.value for kind in NOT_THE_BUILDS_FAULT])
    for chosen, selection in ((in_base, base), (in_head, head)):
        if not chosen.any():
            raise VerdictError(
                f"No trial of {selection.name} is stored.", "See `compilewatch list builds` and `list runs`."
            )
        if not (chosen & ~outside).any():
            raise VerdictError(
                f"Every trial of {selection.name} was cut short by something outside the build.",
                "Run it again.",
            )
    chosen = (in_base | in_head) & ~outside
    side = in_head[chosen].to_numpy(dtype=np.int64)
    # To choose all rows of sixty columns copies them all.
    sides = (trials if chosen.all() else trials[chosen]).assign(side=side)
    return in_time_order(sides).reset_index(drop=True)


def in_time_order(trials: DataFrame) -> DataFrame:
    """`trials` by start, and by id where they started together; as they are where they stand so already."""
    waits = np.diff(trials["started_at"].to_numpy(dtype="datetime64[us]")).astype(np.int64)
    together = np.flatnonzero(waits == 0)
    ids, following = (trials["trial_id"].iloc[together + step].tolist() for step in (0, 1))
    ordered = (waits >= 0).all() and all(map(le, ids, following))
    return trials if ordered else trials.sort_values(["started_at", "trial_id"])


def describe_sides(sides: DataFrame, base: Selection, head: Selection) -> tuple[BuildSide, BuildSide]:
    """The builds, runs and versions of both sides of what `split_sides` returned."""
    of_side = sides["side"].to_numpy(dtype=np.int64)
    build_ids, run_ids = (_values_by_side(sides[name], of_side) for name in ("build_id", "run_id"))
    components = {name: _values_by_side(sides[name], of_side) for name in COMPONENTS if name in sides}
    components |= _libraries_by_side(sides)
    first, second = (
        BuildSide(
            name=selection.name,
            build_ids=tuple(sorted(build_ids[side])),
            run_ids=tuple(run_ids[side]),
            components={
                name: SEVERAL.join(sorted({str(each) for each in values[side]})) or None
                for name, values in components.items()
            },
        )
        for side, selection in enumerate((base, head))
    )
    return first, second


def _values_by_side(column: Series, of_side: Ints) -> tuple[list[Any], list[Any]]:
    """The distinct values of each side in the order in which they come, missing ones left out."""
    # Both sides at once, as numbers: choosing a side's rows of every column costs ten times as much.
    codes, uniques = column.array.factorize()
    values = uniques.tolist()
    base, head = (
        [values[code] for code in pd.unique(codes[of_side == side]).tolist() if code >= 0] for side in (0, 1)
    )
    return base, head


def _libraries_by_side(sides: DataFrame) -> dict[str, tuple[list[str], list[str]]]:
    """The versions that the builds of each side have of a library, by its name."""
    if LIBRARIES not in sides:
        return {}
    found: dict[str, tuple[list[str], list[str]]] = defaultdict(lambda: ([], []))
    builds = sides.loc[~sides.duplicated(["side", "build_id"]), ["side", LIBRARIES]]
    for side, libraries in builds.itertuples(index=False):
        for name, version in libraries_of(libraries).items():
            found[name][side].append(version)
    return dict(sorted(found.items()))


def libraries_of(value: object) -> dict[str, str]:
    """The libraries of a build but those that are components by themselves; none where nobody knows them."""
    known = value if isinstance(value, dict) else {}
    return {name: version for name, version in known.items() if name not in COMPONENTS}


def changed_libraries(base: object, head: object) -> list[str]:
    """The libraries of two builds whose releases differ; of one that a side did not record nobody knows."""
    before, after = libraries_of(base), libraries_of(head)
    return sorted(name for name in before.keys() & after.keys() if before[name] != after[name])


def changed_components(base: BuildSide, head: BuildSide) -> tuple[str, ...]:
    """Parts of the build that differ between the sides, in the order of `COMPONENTS`, then libraries that
    both recorded.
    """
    sides = ((name, value, head.components.get(name)) for name, value in base.components.items())
    return tuple(
        name
        for name, old, new in sides
        if old != new and (name in COMPONENTS or (old is not None and new is not None))
    )


def as_text(value: object) -> str:
    """A condition's value as people and comparisons read it; missing is "unknown"."""
    if isinstance(value, dict):
        return json.dumps(value, sort_keys=True)
    missing = value is None or value is pd.NA or value != value  # noqa: PLR0124
    return "unknown" if missing else str(value)


def plain_settings(value: object, prefix: str = "") -> dict[str, object]:
    """Settings by dotted name, nested ones too, but for those of the build.

    Before `compile_threads` was recorded, a process that libgomp had bound compiled with one.
    """
    if not isinstance(value, dict):
        return {}
    flat: dict[str, object] = {}
    if not prefix and "OMP_PROC_BIND" in (value.get("environment") or {}):
        flat[COMPILE_THREADS] = 1
    for name, each in value.items():
        if isinstance(each, dict):
            flat |= plain_settings(each, f"{prefix}{name}.")
        elif prefix + str(name) not in _OF_THE_BUILD:
            flat[prefix + str(name)] = each
    return flat
