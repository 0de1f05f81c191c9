"""From a trial's record to the rows that hold it."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter, mul
from typing import Any, NamedTuple

import numpy as np
from pydantic_core import to_json
from sqlalchemy import Table

from compilewatch.db.columns.trial import STORED
from compilewatch.db.engine.record_tables import JsonText
from compilewatch.db.engine.tables import (
    BUILD,
    CONDITIONS,
    DETAIL_PARTS,
    MACHINE,
    RUN,
    SAMPLE_KINDS,
    SERIES,
    STRATEGY,
    WORKLOAD,
)
from compilewatch.db.records.fields import INT64_MAX, Record
from compilewatch.db.records.ids import (
    build_identity,
    conditions_identity,
    identity,
    machine_identity,
    recorded_build_identity,
    strategy_identity,
    workload_identity,
)
from compilewatch.db.records.sample_blobs import CODEC, encode_samples, percentile_ns
from compilewatch.db.records.trial import (
    CONTROL_TIMES,
    DEVICE_TIMES,
    VERSION,
    CacheCounters,
    CompilerEvent,
    CompilerFacts,
    TimingMethod,
    Trial,
    compile_threads_of,
    headline_of,
    timing_method_of,
)

DIMENSIONS: dict[str, Table] = {
    "machine": MACHINE,
    "build": BUILD,
    "conditions": CONDITIONS,
    "workload": WORKLOAD,
    "strategy": STRATEGY,
    "series": SERIES,
    "run": RUN,
}
"""The tables that a trial refers to, in the order in which their rows refer to each other."""
COUNTED = tuple(name for name, table in DIMENSIONS.items() if "trials" in table.c)
"""Those that tell how many trials they have."""


class Keys(NamedTuple):
    """The ids of the rows of `DIMENSIONS` that a trial refers to."""

    machine: str
    build: str
    conditions: str
    workload: str
    strategy: str
    series: str
    run: str


@dataclass(frozen=True, slots=True)
class TrialRows:
    """A trial as rows of the tables `trial`, `trial_detail` and, one for each array, `trial_samples`."""

    trial: Trial
    keys: Keys
    row: dict[str, Any]
    details: dict[str, Any]
    arrays: list[dict[str, Any]]


def trial_rows(trial: Trial) -> TrialRows:
    """The rows of one trial."""
    keys = _keys(trial)
    parts = {name: getattr(trial, name) for name in DETAIL_PARTS}
    details = {
        name: None if part is None else JsonText(part.model_dump_json(exclude_defaults=True))
        for name, part in parts.items()
    }
    arrays = {kind: values for kind in SAMPLE_KINDS if len(values := getattr(trial, kind))}
    row = {each.at: _value_at(trial, each.place.split(".")) for each in STORED if each.place}
    row |= {"series_id": keys.series, "build_id": keys.build, "conditions_id": keys.conditions}
    row["content_hash"] = _content_hash(trial, keys, details, arrays)
    return TrialRows(
        trial,
        keys,
        row | _figures(trial, arrays),
        {"trial_id": trial.trial_id, **details},
        [
            {
                "trial_id": trial.trial_id,
                "kind": kind,
                "n": len(values),
                "codec": CODEC,
                "data": encode_samples(values),
            }
            for kind, values in arrays.items()
        ],
    )


def _keys(trial: Trial) -> Keys:
    machine, workload = machine_identity(trial.machine), workload_identity(trial.workload)
    strategy = strategy_identity(trial.strategy)
    series = identity({"machine": machine, "workload": workload, "strategy": strategy})
    build, conditions = build_identity(trial.build), conditions_identity(trial.build)
    return Keys(machine, build, conditions, workload, strategy, series, trial.run_id)


def _value_at(trial: Trial, place: Sequence[str]) -> Any:
    """What a trial's record has at a place; None where a part on the way is absent."""
    value: Any = trial
    for name in place:
        if value is None:
            return None
        value = getattr(value, name)
    return value


_hashed_facts_of = attrgetter(
    *("schema_", "trial_id", "run_id", "started_at", "ended_at", "suite", "label"),
    *("source.kind", "source.name", "status"),
)
_named_of = attrgetter("machine.name", "machine.device_uuid", "build.label")
_reasons_of = attrgetter("workload.reason", "strategy.reason")
_ITEM_BYTES = 8


def _content_hash(
    trial: Trial, keys: Keys, details: dict[str, JsonText | None], arrays: dict[str, list[int]]
) -> str:
    """Equal only for equal records; equal ones can differ in it, by the order of keys or a float's spelling.

    What has its default is left out, so that a later release with more optional fields still recognises what
    this one stored.
    """
    sizes_bytes = [(kind, _ITEM_BYTES * len(values)) for kind, values in arrays.items()]
    ids = keys.machine, recorded_build_identity(trial.build), keys.workload, keys.strategy
    reasons = _reasons_of(trial) if any(_reasons_of(trial)) else ()
    content = (*_hashed_facts_of(trial), *ids, *_named_of(trial), sizes_bytes, *reasons)
    # JSON holds no line break, so that lines cannot be mistaken for others.
    lines = [line for name, part in details.items() if part is not None for line in (name, part)]
    raw = (np.asarray(values, dtype="<i8").tobytes() for values in arrays.values())
    return hashlib.sha256(b"\n".join([to_json(content), "\n".join(lines).encode(), *raw])).hexdigest()[:32]


# Figures by plain arithmetic; None where nothing is known.


def _figures(trial: Trial, arrays: dict[str, list[int]]) -> dict[str, Any]:
    ascending = {kind: sorted(values) for kind, values in arrays.items()}
    compiler = trial.compiler
    return {
        **_latencies(trial, ascending),
        **{kind: percentile_ns(ascending.get(kind, ()), 0.5) for kind in (*DEVICE_TIMES, *CONTROL_TIMES)},
        "graph_breaks": None if compiler is None else _total(compiler.graph_breaks),
        "recompiles": None if compiler is None else _total(compiler.recompiles),
        **_refusals(compiler),
        "cache_hit_rate": _hit_rate(compiler.cache) if compiler and compiler.cache else None,
        "compile_threads": compile_threads_of(trial),
        "record_version": VERSION,
    }


def _refusals(compiler: CompilerFacts | None) -> dict[str, int | None]:
    """How often what was asked for was not done."""
    hit = compiler.recompile_limit_hit if compiler else None
    lists = {
        "cudagraph_skips": compiler.cudagraph_skips if compiler else None,
        "cache_bypasses": compiler.cache_bypasses if compiler else None,
    }
    return {
        "recompile_limit_hit": None if hit is None else int(hit),
        **{name: None if reasons is None else len(reasons) for name, reasons in lists.items()},
    }


def _hit_rate(caches: CacheCounters) -> float | None:
    """What AOTAutograd's cache has not, the one of FX graphs is asked for: its miss is no second one."""
    found = (caches.fx_graph_hits or 0) + (caches.aot_autograd_hits or 0)
    lookups = found + (caches.fx_graph_misses or 0) + (caches.fx_graph_bypasses or 0)
    return found / lookups if lookups else None


def _standard_deviation(samples: list[int]) -> float:
    """In whole numbers until the quotient: as exact as `statistics.stdev`, in a tenth of its time."""
    n, total = len(samples), sum(samples)
    return math.sqrt((n * sum(map(mul, samples, samples)) - total * total) / (n * (n - 1)))


def _latencies(trial: Trial, ascending: dict[str, list[int]]) -> dict[str, Any]:
    """From the array that is the headline where there is one, else from the summary an imported result
    brought along."""
    headline, summary = headline_of(trial), trial.summary
    own, eager = ascending.get(headline, []), ascending.get(f"control_{headline}", [])
    p05, median, p95, p99 = (percentile_ns(own, share) for share in (0.05, 0.5, 0.95, 0.99))
    samples: int | None = len(own) or None
    control = percentile_ns(eager, 0.5)
    if summary is not None and median is None:
        median, samples = summary.latency_ns, summary.n
    if summary is not None and control is None:
        control = summary.control_latency_ns
    method, control_method = _timing_methods(trial, median, control)
    return {
        "latency_p05_ns": p05,
        "latency_ns": median,
        "latency_p95_ns": p95,
        "latency_p99_ns": p99,
        "latency_sd_ns": _standard_deviation(own) if len(own) > 1 else None,
        "samples": samples,
        "control_latency_ns": control,
        "control_samples": len(eager) or None,
        "timing_method": method,
        "control_timing_method": control_method,
    }


def _timing_methods(
    trial: Trial, latency_ns: float | None, control_ns: float | None
) -> tuple[TimingMethod | None, TimingMethod | None]:
    """How the device time of both sides was taken; None for a side without any time."""
    if trial.timing is not None:
        return trial.timing.side.method, trial.timing.control.method if trial.timing.control else None
    method = timing_method_of(trial)
    return None if latency_ns is None else method, None if control_ns is None else method


def _total(events: Sequence[CompilerEvent] | None) -> int | None:
    """How often all events happened together, at most what a column can hold."""
    return None if events is None else min(sum(event.count for event in events), INT64_MAX)


def dimension_row(name: str, trial: Trial, keys: Keys) -> dict[str, Any]:
    """The row of a table of `DIMENSIONS` that a trial refers to, as it is inserted when it is new."""
    counts = dict.fromkeys(("trials", "failed_trials", "cancelled_trials"), 0)
    tallies = {**counts, "first_seen_at": None, "last_seen_at": None}
    match name:
        case "run":
            return {"run_id": trial.run_id, "suite": trial.suite, "label": trial.label, **tallies}
        case "series":
            known = {
                f"{part}_id": getattr(keys, part) for part in ("series", "machine", "workload", "strategy")
            }
            return known | tallies
        case "conditions":
            return {"conditions_id": keys.conditions, "settings": trial.build.settings}
        case "build":
            own = trial.build.model_dump(exclude={"settings"})
            return {"build_id": keys.build, **own, **tallies}
    part: Record = getattr(trial, name)
    own = part.model_dump(exclude={"device_uuid", "reason"})
    return {f"{name}_id": getattr(keys, name), **own, **tallies}
