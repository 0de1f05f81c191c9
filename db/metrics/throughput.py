"""Items per second: what a step works off over its latency. The one rule, for trials, cases and records.

The workload says how many of what one step works off: images, tokens, sequences. One that does not is counted
in samples of its batch, and one without a batch in steps.

Sweeps among the cases of a build: one workload at several batch sizes, sequence lengths, image sizes or
numbers of ranks.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from pandas import DataFrame

from compilewatch.db.columns.column import Column
from compilewatch.db.metrics.groups import Floats, floats, row_dicts
from compilewatch.db.records.strategies import EAGER
from compilewatch.db.records.vocabulary import Metric
from compilewatch.db.units import rate, significant

_NS_PER_S = 1e9


def items_per_step(trials: DataFrame) -> Floats:
    """Per row of a frame with `items_per_iteration` and `batch_size`; never missing."""
    items, batch = floats(trials["items_per_iteration"]), floats(trials["batch_size"])
    return np.where(np.isnan(items), np.where(np.isnan(batch), 1.0, batch), items)


def per_second(items: float, latency_ns: float) -> float:
    """Items per second of steps of `items` items, of a latency above 0."""
    return items * _NS_PER_S / latency_ns


def rates_per_second(items: Floats, latencies_ns: Floats) -> Floats:
    """The same of many; NaN where the latency is missing or 0, as a source may state it."""
    return items * _NS_PER_S / np.where(latencies_ns > 0, latencies_ns, np.nan)


def throughput_columns(items: Floats, cases: Mapping[str, object]) -> dict[str, object]:
    """Of cases, by their latencies: the value, the ends of its interval, and that of eager beside it."""
    latencies = {
        "throughput_per_s": "latency_ns",
        "throughput_low_per_s": "latency_high_ns",
        "throughput_high_per_s": "latency_low_ns",
        "control_throughput_per_s": "control_latency_ns",
    }
    return {
        name: rates_per_second(items, np.asarray(cases[latency], np.float64))
        for name, latency in latencies.items()
    }


def items_of(workload: Mapping[Any, Any]) -> tuple[float, str]:
    """How many of what a step works off, by the labels of a case or the fields of a workload's record."""
    items, batch, word = (workload[name] for name in ("items_per_iteration", "batch_size", "item"))
    named = word.removesuffix("s") if isinstance(word, str) else None
    if not pd.isna(items):
        return float(items), named or ("sample" if items == batch else "item")
    return (1.0, "step") if pd.isna(batch) else (float(batch), "sample")


def throughputs_text(item: str, per_s: Any, eager_per_s: Any = None) -> str:
    """A throughput with what it counts, eager's beside it where there is one: "985 tokens/s (764)"."""
    own, beside = (None if pd.isna(each) else each for each in (per_s, eager_per_s))
    return rate(own, item) + ("" if beside is None else f" ({significant(beside)})")


def write_of(figure: Column, workload: Mapping[Any, Any]) -> Callable[..., str]:
    """How `figure` is written of a case, by its labels: a throughput with what it counts."""
    counts = figure.key == Metric.THROUGHPUT
    return partial(rate, item=items_of(workload)[1]) if counts else figure.write


BATCH_SIZE, RANKS = "batch_size", "ranks"
# Of the eager beside a strategy: a column of a case, and the one that has the same of that eager.
_BESIDE = {"throughput_per_s": "control_throughput_per_s", "peak_bytes": "control_peak_bytes"}
OF_WORKLOAD_BUT_RANKS = (
    *("machine_id", "build_id", "workload_version", "task", "batch_size", "shape", "dtype", "variant"),
)
"""What cases of one workload share whatever the number of ranks; each rank has a batch of its own."""
_OF_PLACE = (
    *("workload", "workload_id", "workload_label", "size", "second", "first_look", "counted_trials"),
    *(*OF_WORKLOAD_BUT_RANKS, RANKS),
)
_SIZE = re.compile(r"-[a-z_]*(\d+)$")

Case = dict[str, Any]


class Sweep(NamedTuple):
    """One workload over one of its sizes, all else alike but its `second` size, empty where none differs.

    `held` are its other sizes. `cases` are rows of `summarize_cases` with `size` and `second` beside, the
    latter None where nothing differs; eager without a process of its own is a row of the strategy "eager"
    that has throughput and peak memory alone. `item` is what throughput counts.
    """

    workload: str
    size: str
    second: str
    held: Mapping[str, int]
    item: str
    cases: tuple[Case, ...]

    @property
    def sizes(self) -> tuple[int, ...]:
        """Those measured, ascending."""
        return tuple(sorted({case["size"] for case in self.cases}))


def sweeps(cases: pd.DataFrame) -> list[Sweep]:
    """Every sweep among `cases` (rows of `summarize_cases` of one build), of two sizes at least."""
    families: dict[tuple[Any, ...], list[tuple[dict[str, int], Case]]] = {}
    for case in row_dicts(cases):
        sizes = _sizes(case)
        name = _family(str(case["workload"]), sizes.values(), f"-{case['dtype']}")
        key = (name, str(case["task"]), str(case["dtype"]), str(case["source_name"]), tuple(sorted(sizes)))
        families.setdefault(key, []).append((sizes, case))
    return [sweep for key, members in sorted(families.items()) for sweep in _of_family(key[0], members)]


def _of_family(workload: str, members: Sequence[tuple[dict[str, int], Case]]) -> Iterator[Sweep]:
    """Over the batch size where that differs, else over the size with most values; next to it the one with
    most values of the others. What else differs makes sweeps of their own.
    """
    values = {name: {sizes[name] for sizes, _ in members} for name in members[0][0]}
    differing = sorted(
        (name for name in values if len(values[name]) > 1),
        key=lambda name: (name != BATCH_SIZE, -len(values[name]), name),
    )
    for size in differing:
        second = next((name for name in differing if name != size), "")
        groups: dict[tuple[tuple[str, int], ...], dict[tuple[Any, ...], Case]] = {}
        for sizes, case in members:
            held = tuple((name, sizes[name]) for name in sizes if name not in (size, second))
            own = case | {"size": sizes[size], "second": sizes.get(second)}
            # Of an edited workload the version that comes last.
            groups.setdefault(held, {})[case["strategy"], own["second"], own["size"]] = own
        alike = {held: list(own.values()) for held, own in sorted(groups.items())}
        found = [
            Sweep(workload, size, second, dict(held), items_of(own[0])[1], _with_eager(own))
            for held, own in alike.items()
            if _scales(own)
        ]
        yield from found
        if found:
            return


def _scales(cases: Sequence[Case]) -> bool:
    """Whether there are two sizes of anything that is alike else."""
    return len({case["second"] for case in cases}) < len({(case["second"], case["size"]) for case in cases})


def _sizes(case: Mapping[str, Any]) -> dict[str, int]:
    shape = case["shape"] if isinstance(case["shape"], dict) else {}
    labels = {name: int(case[name]) for name in (BATCH_SIZE, RANKS) if not pd.isna(case[name])}
    return labels | {str(name): int(value) for name, value in shape.items()}


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


def _with_eager(cases: Sequence[Case]) -> tuple[Case, ...]:
    """`cases` and the eager beside them, told by its own processes where it has some."""
    own = {(case["second"], case["size"]) for case in cases if case["strategy"] == EAGER.name}
    beside: dict[tuple[int | None, int], Case] = {}
    for case in cases:
        place = case["second"], case["size"]
        known = any(not pd.isna(case[column]) for column in _BESIDE.values())
        if place not in own and known:
            eager = dict.fromkeys(case) | {name: case[name] for name in _OF_PLACE if name in case}
            figures = {name: case[column] for name, column in _BESIDE.items()}
            beside.setdefault(place, eager | figures | {"strategy": EAGER.name})
    return (*cases, *beside.values())
