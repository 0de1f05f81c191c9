"""Whole trial records, exactly as they were saved.

Trials by column, some at a time, for exports: what their narrow rows hold already is not computed again.

Reading whole records takes several times as long: JSON of a dozen parts, hundreds of samples, and a check of
each.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

from pydantic import ValidationError
from pydantic_core import to_json
from sqlalchemy import Connection, Enum, RowMapping, Select, Text, cast, select

from compilewatch.db.engine.session import Database
from compilewatch.db.engine.tables import (
    BUILD,
    CONDITIONS,
    DETAIL_PARTS,
    MACHINE,
    SAMPLE_KINDS,
    SERIES,
    STRATEGY,
    TRIAL,
    TRIAL_DETAIL,
    TRIAL_SAMPLES,
    WORKLOAD,
)
from compilewatch.db.errors import NotFoundError, RecordError
from compilewatch.db.queries.selection import Filters, matching, oldest_first, plain
from compilewatch.db.records.evidence import RankFacts
from compilewatch.db.records.fields import first_problem
from compilewatch.db.records.sample_blobs import Blob, decode_samples
from compilewatch.db.records.trial import Build, Machine, Source, Strategy, Summary, Trial, Workload

_BATCH = 500
_ID_LENGTH = 26
"""Of the ids that this project makes; others are no longer."""
_SHORTEST_BEGINNING = 3
_MOST_NEAR = 3
_DETAIL_COLUMNS = [column for column in TRIAL_DETAIL.c if column.name != "trial_id"]
_TRIAL_FIELDS = ("trial_id", "run_id", "started_at", "ended_at", "suite", "label", "status")


class StackKey(NamedTuple):
    """What trials with the same workload, strategy, machine and build agree in; fields are columns of
    `trial`.
    """

    series_id: str
    build_id: str
    conditions_id: str | None
    machine_name: str
    device_uuid: str | None
    build_label: str | None
    workload_reason: str | None
    strategy_reason: str | None


TRIAL_COLUMNS = [TRIAL.c[name] for name in (*_TRIAL_FIELDS, "source_kind", "source_name", *StackKey._fields)]


@dataclass(frozen=True, eq=False)
class Stack:
    """What trials share, one object for all that have the same; ids as they are stored."""

    machine_id: str
    workload_id: str
    strategy_id: str
    workload: Workload
    strategy: Strategy
    machine: Machine
    build: Build

    def parts(self) -> dict[str, Workload | Strategy | Machine | Build]:
        return {
            "workload": self.workload,
            "strategy": self.strategy,
            "machine": self.machine,
            "build": self.build,
        }


def trial_record(db: Database, trial_id: str) -> Trial:
    """The trial as it was saved. Raises NotFoundError where there is none with this id, RecordError where
    an earlier release stored what is no record any more.
    """
    with db.read() as connection:
        for trial in load_trials(connection, [trial_id]):
            return trial
        near = _nearest(connection, trial_id.upper())
    raise NotFoundError(
        f"There is no trial {trial_id}.",
        f"Did you mean {' or '.join(near)}?" if near else "`compilewatch list trials` has the ids.",
    )


def _nearest(connection: Connection, trial_id: str) -> list[str]:
    """The newest trials whose ids share the longest beginning with `trial_id`; none without a beginning."""
    for length in range(min(len(trial_id), _ID_LENGTH), _SHORTEST_BEGINNING - 1, -1):
        begins = TRIAL.c.trial_id.startswith(trial_id[:length], autoescape=True)
        found = select(TRIAL.c.trial_id).where(begins).order_by(TRIAL.c.trial_id.desc()).limit(_MOST_NEAR)
        if near := list(connection.scalars(found)):
            return near
    return []


def trial_records(db: Database, filters: Filters = Filters()) -> Iterator[Trial]:  # noqa: B008
    """All matching trials, oldest first, in constant memory and from one moment's data. Raises RecordError as
    `trial_record` does.
    """
    statement = _whole_trials().where(*matching(filters)).order_by(*oldest_first())
    with db.read() as connection:
        yield from _assembled(connection, statement)


def ranks_of(db: Database, trial: Trial) -> list[RankFacts]:
    """What the ranks that took each step together compiled: those of the trial, or of a job's processes in
    its run. Empty where there is one process.
    """
    own = trial.compiler.ranks if trial.compiler is not None else None
    if not own:
        return []
    if len(own) > 1:
        return own
    of_run = trial_records(db, Filters(runs=(trial.run_id,), workloads=(trial.workload.name,)))
    ranks = [rank for each in of_run if each.compiler is not None for rank in each.compiler.ranks or ()]
    return sorted(ranks, key=lambda each: each.rank)


def load_trials(connection: Connection, trial_ids: Sequence[str]) -> Iterator[Trial]:
    """The trials with these ids, those that are there, in no particular order."""
    return _assembled(connection, _whole_trials().where(TRIAL.c.trial_id.in_(trial_ids)))


def _whole_trials() -> Select[Any]:
    return select(*TRIAL_COLUMNS, *_DETAIL_COLUMNS).join(
        TRIAL_DETAIL, TRIAL_DETAIL.c.trial_id == TRIAL.c.trial_id
    )


def _assembled(connection: Connection, statement: Select[Any]) -> Iterator[Trial]:
    for row, stack, samples in whole_rows(connection, statement):
        yield _assemble(row, stack, samples)


def whole_rows(
    connection: Connection, statement: Select[Any]
) -> Iterator[tuple[RowMapping, Stack, dict[str, list[int]]]]:
    """The rows of a statement with `TRIAL_COLUMNS`, what each shares with others, and its arrays by kind."""
    stacks = Stacks(connection)
    # Closed where a record cannot be read too: a cursor of the server would stay open.
    with connection.execute(statement.execution_options(yield_per=_BATCH)).mappings() as result:
        for rows in result.partitions():
            samples = load_samples(connection, [row["trial_id"] for row in rows])
            keys = [StackKey(*[row[name] for name in StackKey._fields]) for row in rows]
            stacks.load(keys)
            for row, key in zip(rows, keys, strict=True):
                with _no_record(row["trial_id"]):
                    stack = stacks.of(key)
                yield row, stack, samples[row["trial_id"]]


class Stacks:
    """Workload, strategy, machine and build of trials, read once and shared by all that have the same."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._cases: dict[str, dict[str, Any]] = {}
        self._builds: dict[str, dict[str, Any]] = {}
        self._settings: dict[str | None, dict[str, Any]] = {None: {}}
        self._known: dict[StackKey, Stack] = {}

    def load(self, keys: Iterable[StackKey]) -> None:
        """Read what `keys` refer to and is not known yet."""
        new = set(keys) - self._known.keys()
        _load_cases(self._connection, {key.series_id for key in new} - self._cases.keys(), self._cases)
        _load_builds(self._connection, {key.build_id for key in new} - self._builds.keys(), self._builds)
        if wanted := {key.conditions_id for key in new} - self._settings.keys():
            statement = select(CONDITIONS).where(CONDITIONS.c.conditions_id.in_(wanted))
            rows = self._connection.execute(statement)
            self._settings |= {row.conditions_id: row.settings for row in rows}

    def of(self, key: StackKey) -> Stack:
        """What the trials with a loaded key share."""
        stack = self._known.get(key)
        if stack is None:
            case, build = self._cases[key.series_id], self._builds[key.build_id]
            settings = self._settings[key.conditions_id]
            stack = self._known[key] = _stack(key, case, {**build, "settings": settings})
        return stack


def load_samples(connection: Connection, trial_ids: list[str]) -> dict[str, dict[str, list[int]]]:
    """Trial id -> kind of array -> its values."""
    samples: dict[str, dict[str, list[int]]] = defaultdict(dict)
    statement = select(TRIAL_SAMPLES).where(TRIAL_SAMPLES.c.trial_id.in_(trial_ids))
    for row in connection.execute(statement):
        samples[row.trial_id][row.kind] = decode_samples(Blob(row.data, row.codec, row.n))
    return samples


def _load_cases(connection: Connection, series_ids: Iterable[str], into: dict[str, dict[str, Any]]) -> None:
    wanted = list(series_ids)
    if not wanted:
        return
    tables = {"machine": MACHINE, "workload": WORKLOAD, "strategy": STRATEGY}
    columns = [column.label(f"{name}.{column.name}") for name, table in tables.items() for column in table.c]
    joined = select(SERIES, *columns)
    for name, table in tables.items():
        joined = joined.join(table, SERIES.c[f"{name}_id"] == table.c[f"{name}_id"])
    for row in connection.execute(joined.where(SERIES.c.series_id.in_(wanted))).mappings():
        into[row["series_id"]] = {
            **{f"{name}_id": row[f"{name}_id"] for name in tables},
            "machine": _fields(Machine, row, "machine."),
            "workload": Workload(**_fields(Workload, row, "workload.")),
            "strategy": Strategy(**_fields(Strategy, row, "strategy.")),
        }


def _load_builds(connection: Connection, build_ids: Iterable[str], into: dict[str, dict[str, Any]]) -> None:
    wanted = list(build_ids)
    if wanted:
        statement = select(BUILD).where(BUILD.c.build_id.in_(wanted))
        for row in connection.execute(statement).mappings():
            into[row["build_id"]] = _fields(Build, row, "")


def _fields(
    model: type[Machine | Workload | Strategy | Build], row: RowMapping, prefix: str
) -> dict[str, Any]:
    """What a row holds of a record; the rest of its fields are each trial's own."""
    return {name: row[prefix + name] for name in model.model_fields if prefix + name in row}


def _stack(key: StackKey, case: dict[str, Any], build: dict[str, Any]) -> Stack:
    own = {"name": key.machine_name, "device_uuid": key.device_uuid}
    reasons = {"workload": key.workload_reason, "strategy": key.strategy_reason}
    facts = {
        name: case[name].model_copy(update={"reason": reason})
        for name, reason in reasons.items()
        if reason is not None
    }
    return Stack(
        **case | {"machine": Machine(**case["machine"] | own)} | facts,
        build=Build(**build | {"label": key.build_label}),
    )


def _assemble(row: RowMapping, stack: Stack, samples: dict[str, list[int]]) -> Trial:
    with _no_record(row["trial_id"]):
        fields: dict[str, Any] = {
            **{name: row[name] for name in _TRIAL_FIELDS},
            **{column.name: row[column.name] for column in _DETAIL_COLUMNS},
            **samples,
            **stack.parts(),
            "source": Source(kind=row["source_kind"], name=row["source_name"]),
        }
        return Trial(**fields)


@contextmanager
def _no_record(trial_id: str) -> Iterator[None]:
    """Raises RecordError for what is stored of a trial and can be no record, as a name that is too long."""
    try:
        yield
    except ValidationError as error:
        raise RecordError(
            f"Trial {trial_id} is stored as no record may be: {first_problem(error, 'all of it')}.",
            "See `compilewatch db check`, and take it out with `compilewatch db remove-trials`.",
        ) from error


_COLUMN_BATCH = 1000
_COLUMNS = {column.name: plain(column) if isinstance(column.type, Enum) else column for column in TRIAL.c}


@dataclass(frozen=True, eq=False)
class TrialBatch:
    """Some trials: `columns` are those of the table `trial`, enums as text; the rest has an entry for each.

    `summaries` are None where a trial has none. The batch can be asked for `arrays` until the next is.
    """

    columns: Mapping[str, Sequence[Any]]
    stacks: Sequence[Stack]
    summaries: Sequence[Summary | None]
    _connection: Connection

    def arrays(self) -> dict[str, list[list[int]]]:
        """Of every kind of array that of each trial, in ns; empty where it has none."""
        trial_ids = self.columns["trial_id"]
        samples = load_samples(self._connection, list(trial_ids))
        return {
            kind: [samples.get(trial_id, {}).get(kind, []) for trial_id in trial_ids] for kind in SAMPLE_KINDS
        }


def trial_batches(db: Database, filters: Filters) -> Iterator[TrialBatch]:
    """All matching trials, oldest first, in constant memory and from one moment's data."""
    # As text: most trials have none, and the type would look at each.
    summary = cast(TRIAL_DETAIL.c.summary, Text)
    joined = select(*_COLUMNS.values(), summary).join(
        TRIAL_DETAIL, TRIAL_DETAIL.c.trial_id == TRIAL.c.trial_id
    )
    statement = joined.where(*matching(filters)).order_by(*oldest_first())
    with db.read() as connection:
        stacks = Stacks(connection)
        result = connection.execute(statement.execution_options(yield_per=_COLUMN_BATCH))
        for rows in result.partitions():
            *columns, summaries = zip(*rows, strict=True)
            named = dict(zip(_COLUMNS, columns, strict=True))
            keys = [*map(StackKey._make, zip(*[named[name] for name in StackKey._fields], strict=True))]
            stacks.load(keys)
            yield TrialBatch(
                columns=named,
                stacks=[stacks.of(key) for key in keys],
                # As stored: what an earlier release took goes out too, and is refused where it comes in.
                summaries=[
                    None if text is None else Summary.model_construct(**json.loads(text))
                    for text in summaries
                ],
                _connection=connection,
            )


_SCHEMA = Trial.model_fields["schema_"].default


def trial_lines(db: Database, filters: Filters) -> Iterator[bytes]:
    """All matching trials, oldest first, in constant memory and from one moment's data.

    Each is the record of `db.queries.records.trial_records` as JSON without what has its default.
    """
    # As text: neither SQLAlchemy nor the driver takes it apart.
    details = [cast(TRIAL_DETAIL.c[name], Text).label(name) for name in DETAIL_PARTS]
    whole = select(*TRIAL_COLUMNS, *details).join(TRIAL_DETAIL, TRIAL_DETAIL.c.trial_id == TRIAL.c.trial_id)
    statement = whole.where(*matching(filters)).order_by(*oldest_first())
    settings: dict[Stack, bytes] = {}
    with db.read() as connection:
        for row, stack, samples in whole_rows(connection, statement):
            if stack not in settings:
                settings[stack] = _setting(stack)
            yield _line(row, settings[stack], samples)


def _setting(stack: Stack) -> bytes:
    parts = [
        f'"{name}":{part.model_dump_json(exclude_defaults=True)}' for name, part in stack.parts().items()
    ]
    return ",".join(parts).encode()


def _line(row: RowMapping, setting: bytes, samples: dict[str, list[int]]) -> bytes:
    """In the order of the record's fields, which is how `db.interchange.files.trial_jsonl` reads it
    quickly."""
    head = {
        "schema": _SCHEMA,
        **{name: row[name] for name in ("trial_id", "run_id", "started_at", "ended_at", "suite", "label")},
        "source": {"kind": row["source_kind"].value, "name": row["source_name"]},
    }
    parts = [to_json(head)[:-1], setting, b'"status":"%b"' % row["status"].value.encode()]
    stored = ((name, row[name]) for name in DETAIL_PARTS)
    parts += [b'"%b":%b' % (name.encode(), text.encode()) for name, text in stored if text is not None]
    arrays = ((kind, samples[kind]) for kind in SAMPLE_KINDS if kind in samples)
    parts += [b'"%b":%b' % (kind.encode(), to_json(values)) for kind, values in arrays]
    return b",".join(parts) + b"}"
