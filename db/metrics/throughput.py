"""Items per second: what a step works off over its latency. The one rule, for trials, cases and records.

The workload says how many of what one step works off: images, tokens, sequences. One that does not is counted
in samples of its batch, and one without a batch in steps.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from pandas import DataFrame

from compilewatch.db.columns.column import Column
from compilewatch.db.metrics.groups import Floats, floats
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
