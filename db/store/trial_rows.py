"""From a trial record to the rows that hold it."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import compress, islice, pairwise, repeat
from operator import attrgetter
from typing import Any, NamedTuple

from pydantic_core import to_json
from sqlalchemy import Table

from db.columns.trial import STORED
from db.records.fields import INT64_MAX, Record
from db.records.ids import (
    build_identity,
    conditions_identity,
    machine_identity,
    recorded_build_identity,
    series_identity,
    strategy_identity,
    workload_identity,
)
from db.records.samples import CODEC, SampleArrays
from db.records.trial import (
    CONTROL_TIMES,
    DEVICE_TIMES,
    CompilerEvent,
    TimingMethod,
    Trial,
    headline_of,
    timing_method_of,
    version_of,
)
from db.tables.trials import (
    BUILD,
    CONDITIONS,
    DETAIL_PARTS,
    MACHINE,
    RUN,
    SAMPLE_KINDS,
    SERIES,
    STRATEGY,
    TRIAL,
    TRIAL_DETAIL,
    TRIAL_SAMPLES,
    WORKLOAD,
)

# The quantiles a trial's row keeps: p05, median, p95, p99.
_SHARES = (0.05, 0.5, 0.95, 0.99)
_SUMMED_UP = frozenset(("samples_ns", "control_samples_ns", *DEVICE_TIMES, *CONTROL_TIMES))
# Trials whose arrays are worked on together: more of them leave the processor's cache, fewer share less.
_TOGETHER = 100
# How many combinations of shared objects are remembered before they are let go.
_RECENT = 10_000
_arrays_of, _details_of = attrgetter(*SAMPLE_KINDS), attrgetter(*DETAIL_PARTS)


class CaseIds(NamedTuple):
    """The identities a trial refers to."""

    machine: str
    build: str
    workload: str
    strategy: str
    series: str
    conditions: str
    recorded_build: str


@dataclass
class Identifier:
    """Computes identities, each distinct part of a record once."""

    _known: dict[str, CaseIds] = field(default_factory=dict)
    # By the objects themselves, which readers share between trials; held here, so that no id is reused.
    _recent: dict[tuple[int, ...], tuple[tuple[Record, ...], CaseIds]] = field(default_factory=dict)

    def ids(self, trial: Trial) -> CaseIds:
        """The identities of the parts of `trial`."""
        parts = (trial.machine, trial.build, trial.workload, trial.strategy)
        objects = tuple(map(id, parts))
        recent = self._recent.get(objects)
        if recent is not None:
            return recent[1]
        key = "\n".join(part.model_dump_json() for part in parts)
        ids = self._known.get(key)
        if ids is None:
            machine, workload = machine_identity(trial.machine), workload_identity(trial.workload)
            strategy, series = strategy_identity(trial.strategy), series_identity(trial)
            build, recorded = build_identity(trial.build), recorded_build_identity(trial.build)
            conditions = conditions_identity(trial.build)
            ids = CaseIds(machine, build, workload, strategy, series, conditions, recorded)
            self._known[key] = ids
        if len(self._recent) >= _RECENT:
            self._recent.clear()
        self._recent[objects] = (parts, ids)
        return ids


class TrialRows(NamedTuple):
    """A trial with all that is computed of it before it is known whether it is new."""

    trial: Trial
    ids: CaseIds
    details: Sequence[str | None]
    arrays: Sequence[tuple[str, bytes, str, int]]
    percentiles_ns: Mapping[str, Sequence[float]]
    content: str


def trial_rows(trials: Sequence[Trial], identifier: Identifier) -> list[TrialRows]:
    """Identities, stored JSON and blobs of many trials: what is worked out together costs least."""
    return [
        entry
        for start in range(0, len(trials), _TOGETHER)
        for entry in _prepare(trials[start : start + _TOGETHER], identifier)
    ]


def _prepare(trials: Sequence[Trial], identifier: Identifier) -> Iterator[TrialRows]:
    kinds: list[str] = []
    arrays: list[Any] = []
    ends = [0]
    for trial in trials:
        for kind, values in zip(SAMPLE_KINDS, _arrays_of(trial), strict=True):
            if len(values):
                kinds.append(kind)
                arrays.append(values)
        ends.append(len(kinds))
    packed = SampleArrays(arrays)
    raw = packed.raw()
    sizes_bytes = [*zip(kinds, map(len, raw), strict=True)]
    stored = [*zip(kinds, packed.encoded(), repeat(CODEC, len(kinds)), map(len, arrays), strict=True)]
    summed_up = [number for number, kind in enumerate(kinds) if kind in _SUMMED_UP]
    percentiles = iter(packed.percentiles_ns(_SHARES, summed_up))
    for trial, (start, end) in zip(trials, pairwise(ends), strict=True):
        details = [
            None if part is None else part.model_dump_json(exclude_defaults=True)
            for part in _details_of(trial)
        ]
        ids = identifier.ids(trial)
        content = _content_hash(trial, ids, details, sizes_bytes[start:end], raw[start:end])
        by_kind = {kind: next(percentiles) for kind in kinds[start:end] if kind in _SUMMED_UP}
        yield TrialRows(trial, ids, details, stored[start:end], by_kind, content)


_hashed_facts_of = attrgetter(
    *("schema_", "trial_id", "run_id", "started_at", "ended_at", "suite", "label"),
    *("source.kind", "source.name", "status"),
)
_hashed_ids_of = attrgetter("machine", "recorded_build", "workload", "strategy")
_named_of = attrgetter("machine.name", "machine.device_uuid", "build.label")


def _content_hash(
    trial: Trial,
    ids: CaseIds,
    details: Sequence[str | None],
    sizes_bytes: Sequence[tuple[str, int]],
    raw: Sequence[bytes],
) -> str:
    """Equal only for equal records; equal ones can differ in it, by the order of keys or a float's spelling.

    What has its default is left out, so that a later release with more optional fields still recognises what
    this one stored.
    """
    content = (*_hashed_facts_of(trial), *_hashed_ids_of(ids), *_named_of(trial), sizes_bytes)
    # JSON holds no line break, so that lines cannot be mistaken for others.
    lines: list[str] = []
    for name, part in zip(DETAIL_PARTS, details, strict=True):
        if part is not None:
            lines += (name, part)
    text = "\n".join(lines).encode()
    return hashlib.sha256(b"\n".join([to_json(content), text, *raw])).hexdigest()[:32]


_PLACED = {each.at: each.place.split(".") for each in STORED if each.place}


def _value_at(trial: Trial, place: Sequence[str]) -> Any:
    """What a trial's record has at a place; None where a part on the way is absent."""
    value: Any = trial
    for name in place:
        if value is None:
            return None
        value = getattr(value, name)
    return value


def trial_columns(new: Sequence[TrialRows]) -> dict[str, Sequence[Any]]:
    """The narrow rows by column: identity, outcome, and figures by plain arithmetic; None where nothing is
    known."""
    trials = [entry.trial for entry in new]
    columns: dict[str, Sequence[Any]] = {
        name: [_value_at(trial, place) for trial in trials] for name, place in _PLACED.items()
    }
    columns["content_hash"] = [entry.content for entry in new]
    columns["series_id"] = [entry.ids.series for entry in new]
    columns["build_id"] = [entry.ids.build for entry in new]
    columns["conditions_id"] = [entry.ids.conditions for entry in new]
    facts = [trial.compiler for trial in trials]
    columns["graph_breaks"] = [None if each is None else _total(each.graph_breaks) for each in facts]
    columns["recompiles"] = [None if each is None else _total(each.recompiles) for each in facts]
    columns["record_version"] = [*map(version_of, trials)]
    columns |= dict(zip(_LATENCY, zip(*map(_latency, new), strict=True), strict=True))
    for name in (*DEVICE_TIMES, *CONTROL_TIMES):
        columns[name] = [entry.percentiles_ns.get(name, _UNKNOWN)[1] for entry in new]
    return columns


_LATENCY = (
    *("latency_p05_ns", "latency_ns", "latency_p95_ns", "latency_p99_ns", "samples"),
    *("control_latency_ns", "control_samples", "timing_method", "control_timing_method"),
)
_UNKNOWN = (None,) * len(_SHARES)


def _latency(new: TrialRows) -> tuple[float | str | None, ...]:
    """From the array that is the headline where there is one, else from the summary an imported result
    brought along."""
    trial, summary = new.trial, new.trial.summary
    headline = headline_of(trial)
    p05, median, p95, p99 = new.percentiles_ns.get(headline, _UNKNOWN)
    _, control, _, _ = new.percentiles_ns.get(f"control_{headline}", _UNKNOWN)
    samples = len(getattr(trial, headline)) or None
    if summary is not None and median is None:
        median, samples = summary.latency_ns, summary.n
    if summary is not None and control is None:
        control = summary.control_latency_ns
    controls = len(getattr(trial, f"control_{headline}")) or None
    return p05, median, p95, p99, samples, control, controls, *_timing_methods(trial, median, control)


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
    return None if events is None else min(sum([event.count for event in events]), INT64_MAX)


def detail_columns(new: Sequence[TrialRows]) -> dict[str, Sequence[Any]]:
    """The parts of each trial as JSON, or None, by column."""
    parts = zip(*[entry.details for entry in new], strict=True)
    return {
        "trial_id": [entry.trial.trial_id for entry in new],
        **dict(zip(DETAIL_PARTS, parts, strict=True)),
    }


def sample_columns(new: Sequence[TrialRows]) -> dict[str, Sequence[Any]]:
    """A row per array that is not empty, by column; empty where there is no array."""
    arrays = [array for entry in new for array in entry.arrays]
    columns = dict(zip(("kind", "data", "codec", "n"), zip(*arrays, strict=True), strict=False))
    return {"trial_id": [entry.trial.trial_id for entry in new for _ in entry.arrays], **columns}


def dimension_row(name: str, trial: Trial, ids: CaseIds) -> dict[str, Any]:
    """The row of a dimension table that a trial refers to, as it is inserted when it is new."""
    counts = dict.fromkeys(("trials", "failed_trials", "cancelled_trials"), 0)
    tallies = {**counts, "first_seen_at": None, "last_seen_at": None}
    match name:
        case "run":
            return {"run_id": trial.run_id, "suite": trial.suite, "label": trial.label, **tallies}
        case "series":
            known = {
                f"{part}_id": getattr(ids, part) for part in ("series", "machine", "workload", "strategy")
            }
            return known | tallies
        case "conditions":
            return {"conditions_id": ids.conditions, "settings": trial.build.settings}
        case "build":
            own = trial.build.model_dump(exclude={"settings"})
            return {"build_id": ids.build, **own, **tallies}
    part: Record = getattr(trial, name)
    return {f"{name}_id": getattr(ids, name), **part.model_dump(exclude={"device_uuid"}), **tallies}


# Batches of trials, made into what the tables hold; `db.store.trial_writer` stores them.

# In the order in which their rows refer to each other.
DIMENSIONS: dict[str, Table] = {
    "machine": MACHINE,
    "build": BUILD,
    "workload": WORKLOAD,
    "strategy": STRATEGY,
    "series": SERIES,
    "run": RUN,
}
TRIALS_OF_A_BATCH = 1000
_Columns = Mapping[str, Mapping[str, Sequence[Any]]]


class Case(NamedTuple):
    """Trials of one case and run, by their places in the batch: they count in the same rows."""

    ids: CaseIds
    run_id: str
    places: list[int]

    @property
    def keys(self) -> tuple[str, ...]:
        """The ids of the rows of `DIMENSIONS` that these trials refer to."""
        ids = self.ids
        return ids.machine, ids.build, ids.workload, ids.strategy, ids.series, self.run_id


@dataclass(frozen=True, slots=True)
class Batch:
    """Trials as their rows.

    `columns` has the values by table and column; `arrays` tells how many rows of `trial_samples` each trial
    has. `dimensions` has the rows of `DIMENSIONS` that no earlier batch told, `records` the trials.
    """

    columns: _Columns
    arrays: Sequence[int]
    cases: list[Case]
    dimensions: Mapping[str, Sequence[dict[str, Any]]]
    records: Sequence[Trial]

    def __len__(self) -> int:
        return len(self.arrays)

    def of_trials(self, name: str) -> Sequence[Any]:
        """A column of the table `trial`."""
        return self.columns[TRIAL.name][name]

    def only(self, places: Sequence[int]) -> Batch:
        """The trials at `places`, which ascend."""
        now_at = {place: now for now, place in enumerate(places)}
        trials = [place in now_at for place in range(len(self))]
        arrays = [
            is_chosen for is_chosen, count in zip(trials, self.arrays, strict=True) for _ in range(count)
        ]
        columns: dict[str, Mapping[str, Sequence[Any]]] = {}
        for name, table in self.columns.items():
            rows = arrays if name == TRIAL_SAMPLES.name else trials
            columns[name] = {column: [*compress(values, rows)] for column, values in table.items()}
        cases = [
            Case(case.ids, case.run_id, [now_at[place] for place in case.places if place in now_at])
            for case in self.cases
        ]
        return replace(
            self,
            columns=columns,
            arrays=[*compress(self.arrays, trials)],
            cases=sorted((case for case in cases if case.places), key=lambda case: case.places[0]),
            records=[*compress(self.records, trials)],
        )


class BatchMaker:
    """Makes the batches of one transaction."""

    def __init__(self) -> None:
        self._identifier = Identifier()
        self._written: set[tuple[str, str]] = set()

    def batches(self, trials: Iterable[Trial], size: int = TRIALS_OF_A_BATCH) -> Iterator[Batch]:
        """`trials`, `size` at a time."""
        remaining = iter(trials)
        while some := list(islice(remaining, size)):
            yield self.batch(some)

    def batch(self, trials: Sequence[Trial]) -> Batch:
        """`trials` as one batch."""
        rows = trial_rows(trials, self._identifier)
        cases: dict[tuple[CaseIds, str], Case] = {}
        dimensions: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for place, entry in enumerate(rows):
            case = cases.get((entry.ids, entry.trial.run_id))
            if case is None:
                case = Case(entry.ids, entry.trial.run_id, [])
                cases[entry.ids, case.run_id] = case
                self._add_dimensions(case, entry, dimensions)
            case.places.append(place)
        return Batch(
            columns={
                TRIAL.name: trial_columns(rows),
                TRIAL_DETAIL.name: detail_columns(rows),
                TRIAL_SAMPLES.name: sample_columns(rows),
            },
            arrays=[len(entry.arrays) for entry in rows],
            cases=list(cases.values()),
            dimensions=dimensions,
            records=trials,
        )

    def _add_dimensions(
        self, case: Case, entry: TrialRows, dimensions: dict[str, list[dict[str, Any]]]
    ) -> None:
        keys = {**dict(zip(DIMENSIONS, case.keys, strict=True)), CONDITIONS.name: case.ids.conditions}
        for name, key in keys.items():
            if (name, key) not in self._written:
                self._written.add((name, key))
                dimensions[name].append(dimension_row(name, entry.trial, entry.ids))
