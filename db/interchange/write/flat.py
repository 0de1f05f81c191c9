"""A trial as one flat row: the columns of the CSV and Parquet exports, named as in the queries' frames.

Times are ns, memory is bytes, moments are UTC. What is missing is empty (null in Parquet), never 0.
`latency_ns` is the median of the trial's headline array, or what the source's summary says where there is
none; `device_ns` and its like are medians of the arrays of their names.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from operator import attrgetter
from typing import Any

from compilewatch.db.columns.column import Holder, Kind
from compilewatch.db.columns.trial import TRIAL
from compilewatch.db.metrics.throughput import items_of, per_second
from compilewatch.db.queries.records import Stack
from compilewatch.db.queries.trial_export import TrialBatch
from compilewatch.db.records.identity import code_name
from compilewatch.db.records.trial import Summary

# JSON is written as text.
_ORDER = (Kind.TEXT, Kind.MOMENT, Kind.INTEGER, Kind.FLOAT, Kind.FLAG)
_EXPORTED = [each for each in TRIAL if each.in_exports]
_KINDS = {each.column: Kind.TEXT if each.kind is Kind.JSON else each.kind for each in _EXPORTED}
KINDS: dict[str, Kind] = dict(sorted(_KINDS.items(), key=lambda named: _ORDER.index(named[1])))
"""Name -> kind of every column, in order."""
Column = Sequence[Any]


class FlatColumns:
    """Turns the batches of one export into columns; what trials share is worked out once."""

    def __init__(self) -> None:
        self._shared: dict[Stack, dict[str, Any]] = {}

    def of(self, batch: TrialBatch) -> dict[str, Column]:
        """Every column of KINDS, in its order; what is JSON in a record is JSON text."""
        for stack in set(batch.stacks) - self._shared.keys():
            self._shared[stack] = _of_stack(stack)
        shared = [self._shared[stack] for stack in batch.stacks]
        known = {
            **batch.columns,
            **{name: [each[name] for each in shared] for name in shared[0]},
            **figures(batch),
            "machine": batch.columns["machine_name"],
            "code": [
                code_name(*of_trial)
                for of_trial in zip(
                    *(batch.columns[name] for name in ("code_commit", "code_dirty", "code_hash")), strict=True
                )
            ],
            "metrics": [_metrics(summary) for summary in batch.summaries],
        }
        return {name: known[name] for name in KINDS}


_SHARED = (Holder.MACHINE, Holder.BUILD, Holder.WORKLOAD, Holder.STRATEGY)
_OF_STACK = {
    **{each.column: each.column for each in TRIAL if each.holder is Holder.SERIES},
    **{
        each.column: f"{each.holder}.{each.at}{'.value' if each.choices else ''}"
        for each in TRIAL
        if each.holder in _SHARED and each.kind is not Kind.JSON
    },
}


def _of_stack(stack: Stack) -> dict[str, Any]:
    settings, libraries, shape = stack.build.settings, stack.build.packages, stack.workload.shape
    texts = {"settings": settings, "packages": libraries, "shape": shape}
    return {
        **{name: attrgetter(place)(stack) for name, place in _OF_STACK.items()},
        **{name: json.dumps(value, sort_keys=True) for name, value in texts.items()},
    }


def _metrics(summary: Summary | None) -> str | None:
    return json.dumps(summary.metrics, sort_keys=True) if summary and summary.metrics else None


def figures(batch: TrialBatch) -> dict[str, Column]:
    """The columns that follow from others: latencies, speedup, throughput and the cost of compiling."""
    latency, control = _latencies(batch)
    return {
        "latency_ns": latency,
        "control_latency_ns": control,
        "speedup": [
            theirs / ours if theirs is not None and ours else None
            for ours, theirs in zip(latency, control, strict=True)
        ],
        "throughput_per_s": _throughput(batch, latency),
        "trial_compile_cost_ns": [
            # Of no calls nothing is taken off: a job tells a cost and may have no latency.
            until if calls == 0 else None if None in (until, calls, each) else until - calls * each
            for until, calls, each in zip(
                batch.columns["until_steady_ns"], batch.columns["calls_until_steady"], latency, strict=True
            )
        ],
    }


def _latencies(batch: TrialBatch) -> tuple[Column, Column]:
    """Medians; without samples the whole number of the summary, which the row holds as a float."""
    latency, control = list(batch.columns["latency_ns"]), list(batch.columns["control_latency_ns"])
    for place, summary in enumerate(batch.summaries):
        if summary is not None:
            if batch.columns["latency_p05_ns"][place] is None:
                latency[place] = summary.latency_ns
            if batch.columns["control_samples"][place] is None:
                control[place] = summary.control_latency_ns
    return latency, control


def _throughput(batch: TrialBatch, latency: Column) -> Column:
    """Items per second by the one rule; of what its source tells without a latency, as the source says."""
    rates: list[float | None] = []
    for stack, summary, each in zip(batch.stacks, batch.summaries, latency, strict=True):
        stated = summary.throughput_per_s if summary else None
        rates.append(per_second(items_of(vars(stack.workload))[0], each) if each else stated)
    return rates
