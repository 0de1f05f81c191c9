"""A history cut into stretches that were measured under one set of conditions."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
from pandas import DataFrame

from compilewatch.db.columns.metrics import SUMMARY_COLUMNS
from compilewatch.db.judge.compare.sides import METHOD_SETTINGS, as_text, plain_settings
from compilewatch.db.judge.results import Result
from compilewatch.db.metrics.groups import Bools, Floats, floats
from compilewatch.db.records.vocabulary import Metric

CONDITION_COLUMNS = ("machine_id", "workload_version", "threads", "settings", "timing_method")
"""Where one of these changes from one point to the next, the series is cut: what follows is another one."""


METHOD = "method"
"""What a cut names where the process compiles with another number of threads, or its allocator keeps memory
otherwise.
"""


class Cut(Result):
    """Where the conditions of measuring changed: at point `index`, in these fields."""

    index: int
    fields: tuple[str, ...]


@dataclass(frozen=True)
class Stretch:
    """Valid points of a series measured under one set of conditions: log values and their positions."""

    y: Floats
    position: list[int]


def find_cuts(points: DataFrame) -> list[Cut]:
    """Where conditions change from one row of `points` to the next, in order. Columns may be missing."""
    present = [name for name in CONDITION_COLUMNS if name in points]
    texts = {name: [as_text(each) for each in points[name]] for name in present if name != "settings"}
    if "settings" in present:
        texts[METHOD], texts["settings"] = _method_and_others(points["settings"].tolist())
    cuts = []
    for index in range(1, len(points)):
        fields = tuple(name for name, each in texts.items() if each[index] != each[index - 1])
        if fields:
            cuts.append(Cut(index=index, fields=fields))
    return cuts


def _method_and_others(settings: list[object]) -> tuple[list[str], list[str]]:
    """Of each the settings of the method, and the others, as text; most share one object."""
    known: dict[int, tuple[str, str]] = {}
    for each in settings:
        if id(each) not in known:
            plain = plain_settings(each)
            method = as_text({name: plain.pop(name, None) for name in METHOD_SETTINGS})
            known[id(each)] = method, as_text(plain)
    return [known[id(each)][0] for each in settings], [known[id(each)][1] for each in settings]


def cut_stretches(points: DataFrame, metric: Metric, cuts: list[Cut]) -> list[Stretch]:
    """The points between the cuts that have a value above 0, are not suspect and were not taken by turns
    with another build beside other runs; no stretch without any.
    """
    values = floats(points[SUMMARY_COLUMNS[metric]])
    valid = np.isfinite(values) & (values > 0)
    for left_out in ("point_suspect", "by_turns"):
        if left_out in points:
            valid &= ~points[left_out].to_numpy(dtype=np.bool_)
    edges = [0, *(cut.index for cut in cuts), len(points)]
    stretches = []
    for start, end in itertools.pairwise(edges):
        position = [start + int(i) for i in np.flatnonzero(valid[start:end])]
        if position:
            stretches.append(Stretch(np.log(values[position]), position))
    return stretches


def points_of_build(points: DataFrame, stretch: Stretch, build: str | None) -> Bools:
    """One flag per point of `stretch`: whether it is of that build; with `build` None, none is."""
    if build is None or "build_id" not in points:
        return np.zeros(len(stretch.y), dtype=np.bool_)
    return np.array([points["build_id"].iloc[i] == build for i in stretch.position], dtype=np.bool_)
