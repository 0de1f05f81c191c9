"""From a trial record to the rows that hold it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

import msgspec

from db.fields import INT64_MAX, Record
from db.identities import build_identity, identity, machine_identity, strategy_identity, workload_identity
from db.quick_trials import part_json
from db.records import CompilerEvent, Trial
from db.samples import CODEC, Blob, SampleArrays
from db.table_parts import JsonText

SAMPLE_KINDS = (
    "warmup_ns",
    "samples_ns",
    "control_warmup_ns",
    "control_samples_ns",
    "host_samples_ns",
    "control_host_samples_ns",
)
DETAIL_PARTS = (
    "failure",
    "cold_start",
    "summary",
    "memory",
    "compiler",
    "numerics",
    "device_state",
    "host_state",
    "sampling",
    "profile",
    "trace",
    "stream",
)
_encode = msgspec.json.Encoder().encode
# The quantiles a trial's row keeps: p05, median, p95, p99.
_SHARES = (0.05, 0.5, 0.95, 0.99)
# How many combinations of shared objects are remembered before they are let go.
_RECENT = 10_000
_COLD_START = ("first_call_ns", "until_steady_ns", "calls_until_steady", "process_tree_cpu_ns")
_MEMORY = (
    "peak_bytes",
    "peak_reserved_bytes",
    "peak_with_compile_bytes",
    "peak_rss_bytes",
    "control_peak_bytes",
)


_arrays_of, _details_of = attrgetter(*SAMPLE_KINDS), attrgetter(*DETAIL_PARTS)
_cold_start_of, _NO_COLD_START = attrgetter(*_COLD_START), dict.fromkeys(_COLD_START)
_memory_of, _NO_MEMORY = attrgetter(*_MEMORY), dict.fromkeys(_MEMORY)


@dataclass(frozen=True)
class CaseIds:
    """The identities a trial refers to."""

    machine: str
    build: str
    workload: str
    strategy: str
    series: str


@dataclass
class Identifier:
    """Computes identities, each distinct part of a record once."""

    _known: dict[str, CaseIds] = field(default_factory=dict)
    # By the objects themselves, which readers share between trials; held here, so that no id is reused.
    _recent: dict[tuple[int, ...], tuple[tuple[Record, ...], CaseIds]] = field(default_factory=dict)

    def ids(self, trial: Trial) -> CaseIds:
        parts = (trial.machine, trial.build, trial.workload, trial.strategy)
        objects = tuple(map(id, parts))
        recent = self._recent.get(objects)
        if recent is not None:
            return recent[1]
        key = "\n".join(part.model_dump_json() for part in parts)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = _case_ids(trial)
        if len(self._recent) >= _RECENT:
            self._recent.clear()
        self._recent[objects] = (parts, found)
        return found


def _case_ids(trial: Trial) -> CaseIds:
    machine, workload = machine_identity(trial.machine), workload_identity(trial.workload)
    strategy = strategy_identity(trial.strategy)
    series = identity({"machine": machine, "workload": workload, "strategy": strategy})
    return CaseIds(machine, build_identity(trial.build), workload, strategy, series)


@dataclass(frozen=True, slots=True)
class Prepared:
    """A trial with all that is computed of it before it is known whether it is new."""

    trial: Trial
    ids: CaseIds
    details: tuple[JsonText | None, ...]
    arrays: tuple[tuple[str, Blob], ...]
    percentiles_ns: Mapping[str, Sequence[float]]
    content: str


def prepare(trials: Sequence[Trial], identifier: Identifier) -> list[Prepared]:
    """Identities, stored JSON and blobs of many trials: what is worked out together costs least."""
    lists = [
        [(kind, values) for kind, values in zip(SAMPLE_KINDS, _arrays_of(trial), strict=True) if values]
        for trial in trials
    ]
    packed = SampleArrays(values for arrays in lists for _, values in arrays)
    raw, blobs = iter(packed.raw()), iter(packed.encoded())
    percentiles = iter(packed.percentiles_ns(_SHARES))
    prepared = []
    for trial, arrays in zip(trials, lists, strict=True):
        ids, details = identifier.ids(trial), _details(trial)
        content = _content_hash(trial, ids, details, [(kind, next(raw)) for kind, _ in arrays])
        stored = tuple((kind, Blob(next(blobs), CODEC, len(values))) for kind, values in arrays)
        found = {kind: next(percentiles) for kind, _ in arrays}
        prepared.append(Prepared(trial, ids, details, stored, found, content))
    return prepared


def _content_hash(
    trial: Trial, ids: CaseIds, details: Sequence[str | None], raw: Sequence[tuple[str, bytes]]
) -> str:
    """Equal only for equal records; equal ones can differ in it, by the order of keys or a float's spelling.

    What has its default is left out, so that a later release with more optional fields still recognises what
    this one stored.
    """
    told = (
        *(trial.schema_, trial.trial_id, trial.run_id, trial.started_at, trial.ended_at),
        *(trial.suite, trial.label, trial.source.kind.value, trial.source.name, trial.status.value),
        *(ids.machine, ids.build, ids.workload, ids.strategy),
        *(trial.machine.name, trial.machine.device_uuid, trial.build.label),
        [(kind, len(values)) for kind, values in raw],
    )
    # JSON holds no line break, so that lines cannot be mistaken for others.
    lines: list[str] = []
    for name, part in zip(DETAIL_PARTS, details, strict=True):
        if part is not None:
            lines += (name, part)
    text = "\n".join(lines).encode()
    return hashlib.sha256(b"\n".join([_encode(told), text, *(values for _, values in raw)])).hexdigest()[:32]


def trial_row(new: Prepared) -> dict[str, Any]:
    """The narrow row: identity, outcome, and figures by plain arithmetic; None where nothing is known."""
    trial, ids = new.trial, new.ids
    failure = trial.failure
    return {
        "trial_id": trial.trial_id,
        "content_hash": new.content,
        "series_id": ids.series,
        "build_id": ids.build,
        "run_id": trial.run_id,
        "started_at": trial.started_at,
        "ended_at": trial.ended_at,
        "suite": trial.suite,
        "label": trial.label,
        "source_kind": trial.source.kind,
        "source_name": trial.source.name,
        "machine_name": trial.machine.name,
        "device_uuid": trial.machine.device_uuid,
        "build_label": trial.build.label,
        "status": trial.status,
        "failure_kind": failure.kind if failure else None,
        "failure_message": failure.message if failure else None,
        **_latency(trial, new.percentiles_ns),
        **_cold_start(trial),
        **(dict(zip(_MEMORY, _memory_of(trial.memory), strict=True)) if trial.memory else _NO_MEMORY),
        **_compiler(trial),
        "numerics_status": trial.numerics.status if trial.numerics else None,
        "suspect": trial.device_state.suspect if trial.device_state else None,
        "cpu_stall_fraction": trial.host_state.cpu_stall_fraction if trial.host_state else None,
    }


def _latency(trial: Trial, percentiles_ns: Mapping[str, Sequence[float]]) -> dict[str, Any]:
    """From the samples where there are any, else from the summary an imported result brought along."""
    unknown = (None,) * len(_SHARES)
    p05, median, p95, p99 = percentiles_ns.get("samples_ns", unknown)
    _, control, _, _ = percentiles_ns.get("control_samples_ns", unknown)
    figures = {
        "latency_ns": median,
        "latency_p05_ns": p05,
        "latency_p95_ns": p95,
        "latency_p99_ns": p99,
        "samples": len(trial.samples_ns) or None,
        "control_latency_ns": control,
        "control_samples": len(trial.control_samples_ns) or None,
    }
    if trial.summary is not None and median is None:
        figures["latency_ns"] = trial.summary.latency_ns
        figures["samples"] = trial.summary.n
    if trial.summary is not None and control is None:
        figures["control_latency_ns"] = trial.summary.control_latency_ns
    return figures


def _cold_start(trial: Trial) -> dict[str, Any]:
    cold = trial.cold_start
    figures = dict(zip(_COLD_START, _cold_start_of(cold), strict=True)) if cold else _NO_COLD_START
    return {"time_to_first_result_ns": cold.total_ns if cold else None, **figures}


def _compiler(trial: Trial) -> dict[str, Any]:
    facts = trial.compiler
    if facts is None:
        return {"graphs": None, "graph_breaks": None, "recompiles": None}
    return {
        "graphs": facts.graphs,
        "graph_breaks": _total(facts.graph_breaks),
        "recompiles": _total(facts.recompiles),
    }


def _total(events: Sequence[CompilerEvent] | None) -> int | None:
    """How often all events happened together, at most what a column can hold."""
    return None if events is None else min(sum(event.count for event in events), INT64_MAX)


def _details(trial: Trial) -> tuple[JsonText | None, ...]:
    return tuple([None if part is None else JsonText(part_json(part)) for part in _details_of(trial)])


DETAIL_COLUMNS = ("trial_id", *DETAIL_PARTS)
SAMPLE_COLUMNS = ("trial_id", "kind", "data", "codec", "n")


def detail_values(new: Prepared) -> tuple[Any, ...]:
    """What stands in `DETAIL_COLUMNS`."""
    return (new.trial.trial_id, *new.details)


def sample_values(new: Prepared) -> list[tuple[Any, ...]]:
    """What stands in `SAMPLE_COLUMNS`, a row per array that is not empty."""
    return [(new.trial.trial_id, kind, *blob) for kind, blob in new.arrays]


def dimension_row(name: str, trial: Trial, ids: CaseIds) -> dict[str, Any]:
    """The row of a dimension table that a trial refers to, as it is inserted when it is new."""
    tallies = {"trials": 0, "failed_trials": 0, "first_seen_at": None, "last_seen_at": None}
    match name:
        case "run":
            return {"run_id": trial.run_id, "suite": trial.suite, "label": trial.label, **tallies}
        case "series":
            known = {
                f"{part}_id": getattr(ids, part) for part in ("series", "machine", "workload", "strategy")
            }
            return known | tallies
    part: Record = getattr(trial, name)
    return {f"{name}_id": getattr(ids, name), **part.model_dump(exclude={"device_uuid"}), **tallies}
