"""Sweeps among the cases of a build: one workload at several batch sizes, sequence lengths or image sizes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import pandas as pd
from pandas import DataFrame

from compilewatch.db.metrics.groups import row_dicts
from compilewatch.db.records.strategies import EAGER

BATCH_SIZE = "batch_size"
QUANTITIES = {
    "throughput_per_s": "control_throughput_per_s",
    "speedup": None,
    "peak_bytes": "control_peak_bytes",
    "compile_cost_ns": None,
}
"""What is drawn over a size, and the column of a case that has the same of the eager beside it."""
_SIZE = re.compile(r"-[a-z_]*(\d+)$")


class Sweep(NamedTuple):
    """One workload over one of its sizes, all others alike. `points`: a row per strategy and size with the
    columns `strategy`, `size`, `first_look` and those of `QUANTITIES`; eager has the first and third of
    these.
    """

    workload: str
    size: str
    points: DataFrame


def sweeps(cases: DataFrame) -> list[Sweep]:
    """Every sweep among `cases` (rows of `summarize_cases` of one build), of two sizes at least."""
    families: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for case in row_dicts(cases):
        sizes = _sizes(case)
        name = _family(str(case["workload"]), sizes.values(), f"-{case['dtype']}")
        for varied in sizes:
            fixed = tuple(sorted((key, value) for key, value in sizes.items() if key != varied))
            key = (name, varied, str(case["task"]), str(case["dtype"]), str(case["source_name"]), fixed)
            families.setdefault(key, []).append(case | {"size": sizes[varied]})
    return [
        Sweep(key[0], key[1], _points(members))
        for key, members in sorted(families.items(), key=lambda item: str(item[0]))
        if len({member["size"] for member in members}) > 1
    ]


def _sizes(case: Mapping[str, Any]) -> dict[str, int]:
    shape = case["shape"] if isinstance(case["shape"], dict) else {}
    batch = {} if pd.isna(case["batch_size"]) else {BATCH_SIZE: int(case["batch_size"])}
    return {**batch, **{str(name): int(value) for name, value in shape.items()}}


def _family(name: str, sizes: Any, dtype: str) -> str:
    """The name without the sizes that a sweep wrote behind it: "ranker" of "ranker-b8-s128", "ranker-float32"
    of "ranker-b8-float32" where it swept both.
    """
    written = {str(size) for size in sizes}
    stem = name.removesuffix(dtype)
    end = name[len(stem) :]
    while (found := _SIZE.search(stem)) and found[1] in written:
        stem = stem[: found.start()]
    return stem + end


def _points(members: Sequence[Mapping[str, Any]]) -> DataFrame:
    points: dict[tuple[str, int], dict[str, Any]] = {}
    for case in members:
        is_eager = case["strategy"] == EAGER.name
        look = {"first_look": bool(case["first_look"])}
        own = look | {name: case[name] for name, beside in QUANTITIES.items() if beside or not is_eager}
        points[str(case["strategy"]), case["size"]] = own
        eager = look | {name: case[beside] for name, beside in QUANTITIES.items() if beside}
        if not is_eager:
            # Eager that has processes of its own is told by them.
            points.setdefault((EAGER.name, case["size"]), eager)
    rows = [{"strategy": strategy, "size": size, **own} for (strategy, size), own in points.items()]
    return DataFrame(rows, columns=["strategy", "size", "first_look", *QUANTITIES]).sort_values(
        ["strategy", "size"], ignore_index=True
    )
