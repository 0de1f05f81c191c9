"""What is wrong with the stored data: the file, references, samples, and what follows from them."""

from __future__ import annotations

import contextlib
import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import Any

from sqlalchemy import (
    Connection,
    RowMapping,
    Select,
    Table,
    and_,
    func,
    or_,
    select,
)
from sqlalchemy.exc import DBAPIError

from compilewatch.db.columns.metrics import POINT_KEYS
from compilewatch.db.columns.trial import STORED
from compilewatch.db.engine.repository import EARLIEST, latest_moment
from compilewatch.db.engine.session import Database
from compilewatch.db.engine.tables import (
    CONDITIONS,
    DETAIL_PARTS,
    KEYS_OF_TRIALS,
    LATEST,
    MACHINE,
    METADATA,
    SERIES,
    STRATEGY,
    TRIAL,
    TRIAL_DETAIL,
    TRIAL_SAMPLES,
    WORKLOAD,
)
from compilewatch.db.errors import DatabaseError
from compilewatch.db.queries.history_points import is_current, kept, regions, summed_up, workloads_of_runs
from compilewatch.db.records.fields import Record
from compilewatch.db.records.ids import machine_identity, strategy_identity, workload_identity
from compilewatch.db.records.sample_blobs import Blob, decode_samples, percentile_ns
from compilewatch.db.records.trial import (
    CONTROL_TIMES,
    DEVICE_TIMES,
    FailureKind,
    Headline,
    Machine,
    Strategy,
    Workload,
)
from compilewatch.db.service.stored_values import DETAIL, all_wrong_values, unreadable
from compilewatch.db.units import plural

_BACKUP = "Restore an earlier backup with `compilewatch db restore`."
_SAMPLES = (
    "The trial cannot be judged any more. Restore an earlier backup with `compilewatch db restore`, or "
    "import the trial's bundle into a new database."
)
_SHARES = {"latency_ns": 0.5, "latency_p05_ns": 0.05, "latency_p95_ns": 0.95, "latency_p99_ns": 0.99}
_TIMELESS = select(TRIAL.c.trial_id).where(or_(TRIAL.c.latency_ns < 1, TRIAL.c.control_latency_ns < 1))
_MEDIANS = (*DEVICE_TIMES, *CONTROL_TIMES)
_NAMED = "See `compilewatch db check`."
_EXAMPLES = 3
_TOLERANCE = 1e-9  # what another release's order of additions may move


@dataclass(frozen=True)
class Damage:
    """One kind of damage in one place: `what` is a sentence, `count` how many rows have it."""

    what: str
    count: int
    next_step: str


def find_damage(db: Database) -> list[Damage]:
    """Everything that is wrong, in one reading transaction; an empty list for a sound database.

    Reads every row of samples. Raises DatabaseError where the database cannot be read at all.
    """
    with db.read() as connection:
        # Nothing can be worked out of a damaged page, or of values that cannot be read.
        if damage := list(_file(connection)) or list(_values(connection)):
            return damage
        damage = [
            *_orphans(connection),
            *_moments(connection),
            *_without_detail(connection),
            *_without_conditions(connection),
            *_without_samples(connection),
            *_identities(connection),
            *_samples(connection),
            *_facts(connection),
            *_tallies(connection),
            *_latest(connection),
        ]
        # Of damaged trials nothing can be summed up.
        return damage or list(_run_cases(connection))


def first_damage(db: Database) -> DatabaseError | None:
    """Why something failed over what is stored: the first damage in a row; None where each is sound.

    Samples are not read, and the search ends at what it finds: it is for whoever waits for an answer. Raises
    DatabaseError as `find_damage` does.
    """
    of_rows = (_values, _orphans, _without_detail, _without_conditions)
    checks = (*of_rows, _tallies, _latest, _identities, _facts)
    with db.read() as connection:
        for check in checks:
            for damage in check(connection):
                return DatabaseError(f"The database is damaged. {damage.what}", _NAMED)
    return None


def _file(connection: Connection) -> Iterator[Damage]:
    """The file itself, page by page; a PostgreSQL server looks after its own."""
    if connection.dialect.name != "sqlite":
        return
    try:
        problems = [str(row[0]) for row in connection.exec_driver_sql("PRAGMA integrity_check")]
    except DBAPIError as error:
        # So damaged that SQLite gives up looking.
        problems = [str(error.orig)]
    if problems != ["ok"]:
        yield Damage(f"The file is damaged: {'; '.join(problems[:_EXAMPLES])}.", len(problems), _BACKUP)


def _values(connection: Connection) -> Iterator[Damage]:
    """What no record can be made of, cell by cell, but for what a command takes out by a name of its own."""
    named = {
        (TRIAL.name, ""): set(connection.scalars(_impossible(connection))),
        (TRIAL_DETAIL.name, "summary"): set(connection.scalars(_TIMELESS)),
    }
    for wrong in all_wrong_values(connection):
        others = named.get((wrong.table, wrong.column), set())
        keys = [key for key in wrong.keys if key[0] not in others]
        rows = plural(len(keys), "row")
        what = f"{wrong.column} of {rows}" if wrong.column else rows
        yield from _damage(f"{what} of {wrong.table} cannot be read", keys)


def _orphans(connection: Connection) -> Iterator[Damage]:
    for table in METADATA.sorted_tables:
        for constraint in sorted(table.foreign_key_constraints, key=lambda orphans: str(orphans.name)):
            parent = constraint.referred_table.alias()
            pairs = [(key.parent, parent.c[key.column.name]) for key in constraint.elements]
            joined = and_(*(child == other for child, other in pairs))
            lost = and_(pairs[0][1].is_(None), *(child.is_not(None) for child, _ in pairs))
            orphans = (
                select(*table.primary_key.columns).select_from(table.outerjoin(parent, joined)).where(lost)
            )
            rows = connection.execute(orphans).all()
            names = " and ".join(sorted(key.parent.name for key in constraint.elements))
            lacking = f"without the {constraint.referred_table.name} that {names} names"
            yield from _damage(f"{plural(len(rows), 'row')} of {table.name} {lacking}", rows)


def _identities(connection: Connection) -> Iterator[Damage]:
    """The ids of what trials have in common follow from it; builds of earlier releases have other ones."""
    for table, record, identity in _IDENTIFIED:
        names = [name for name in record.model_fields if name in table.c]
        rows = connection.execute(select(*table.primary_key, *(table.c[name] for name in names))).mappings()
        (key,) = table.primary_key
        wrong = [
            (row[key],)
            for row in rows
            if identity(record.model_validate({name: row[name] for name in names})) != row[key]
        ]
        what = f"{plural(len(wrong), 'row')} of {table.name} with an id that is not theirs"
        yield from _damage(what, wrong)


_IDENTIFIED: tuple[tuple[Table, type[Record], Callable[[Any], str]], ...] = (
    (MACHINE, Machine, machine_identity),
    (WORKLOAD, Workload, workload_identity),
    (STRATEGY, Strategy, strategy_identity),
)


def _moments(connection: Connection) -> Iterator[Damage]:
    """Trials of moments at which nothing can have been measured: one of next year stays the newest."""
    rows = connection.execute(_impossible(connection)).all()
    what = f"{plural(len(rows), 'trial')} of a moment that cannot be"
    yield from _damage(what, rows, "Take them out with `compilewatch db remove-trials --impossible-moments`.")


def _impossible(connection: Connection) -> Select[tuple[str]]:
    began, ended = TRIAL.c.started_at, TRIAL.c.ended_at
    latest = latest_moment(connection)
    wrong = or_(began < EARLIEST, began > latest, ended > latest, ended < began)
    # A moment that cannot be read is damage: its trial is restored, not taken out.
    readable = [~unreadable(moment, connection.dialect.name) for moment in (began, ended)]
    return select(TRIAL.c.trial_id).where(wrong, *readable).order_by(TRIAL.c.trial_id)


def trials_of_impossible_moments(db: Database) -> list[str]:
    """The ids of all trials that begin after now or before torch, or end before they begin."""
    with db.read() as connection:
        return list(connection.scalars(_impossible(connection)))


def _without_detail(connection: Connection) -> Iterator[Damage]:
    trials = (
        select(TRIAL.c.trial_id)
        .outerjoin(TRIAL_DETAIL, TRIAL_DETAIL.c.trial_id == TRIAL.c.trial_id)
        .where(TRIAL_DETAIL.c.trial_id.is_(None))
    )
    rows = connection.execute(trials).all()
    yield from _damage(f"{plural(len(rows), 'trial')} without details", rows)


def _without_conditions(connection: Connection) -> Iterator[Damage]:
    """Their settings are no reference that a database enforces."""
    joined = TRIAL.outerjoin(CONDITIONS, TRIAL.c.conditions_id == CONDITIONS.c.conditions_id)
    lost = CONDITIONS.c.conditions_id.is_(None) & TRIAL.c.conditions_id.is_not(None)
    rows = connection.execute(select(TRIAL.c.trial_id).select_from(joined).where(lost)).all()
    yield from _damage(f"{plural(len(rows), 'row')} of trial without the conditions that they name", rows)


def _without_samples(connection: Connection) -> Iterator[Damage]:
    """Samples that were forgotten with time leave a summary in the record; these left none."""
    headlines = [f"{headline.value}_ns" for headline in Headline]
    stored = and_(TRIAL_SAMPLES.c.trial_id == TRIAL.c.trial_id, TRIAL_SAMPLES.c.kind.in_(headlines))
    trials = (
        select(TRIAL.c.trial_id)
        .join(TRIAL_DETAIL, TRIAL_DETAIL.c.trial_id == TRIAL.c.trial_id)
        .where(
            TRIAL.c.samples > 0,
            TRIAL_DETAIL.c.summary.is_(None),
            ~select(TRIAL_SAMPLES.c.kind).where(stored).exists(),
        )
    )
    rows = connection.execute(trials).all()
    yield from _damage(f"{plural(len(rows), 'trial')} without samples", rows, _SAMPLES)


def _samples(connection: Connection) -> Iterator[Damage]:
    """Blobs that cannot be read, and figures of a trial that do not follow from its samples."""
    columns = ("trial_id", *_SHARES, "samples", "control_latency_ns", "control_samples", *_MEDIANS)
    stored = TRIAL_SAMPLES.c
    statement = (
        select(*(TRIAL.c[name] for name in columns), TRIAL_DETAIL.c.timing)
        .add_columns(stored.kind, stored.n, stored.codec, stored.data)
        .join(TRIAL, TRIAL.c.trial_id == stored.trial_id)
        .join(TRIAL_DETAIL, TRIAL_DETAIL.c.trial_id == stored.trial_id)
        .order_by(TRIAL.c.trial_id, stored.kind)
    )
    unreadable: list[tuple[str, str]] = []
    wrong: list[tuple[str]] = []
    timeless = set(connection.scalars(_TIMELESS))
    streamed = connection.execution_options(yield_per=500).execute(statement)
    for trial_id, arrays in groupby(streamed, key=attrgetter("trial_id")):
        for row in arrays:
            try:
                ordered = sorted(decode_samples(Blob(row.data, row.codec, row.n)))
            except DatabaseError:
                unreadable.append((trial_id, row.kind))
            else:
                if ordered and ordered[0] < 1:
                    timeless.add(trial_id)
                if not _follows(row._mapping, ordered):
                    wrong.append((trial_id,))
    what = f"{plural(len(unreadable), 'array')} of samples cannot be read"
    yield from _damage(what, unreadable, _SAMPLES)
    what = f"{plural(len(wrong), 'trial')} with figures that do not follow from their samples"
    yield from _damage(what, wrong, _SAMPLES)
    what = f"{plural(len(timeless), 'trial')} with a sample that took no time"
    rows = [(trial_id,) for trial_id in sorted(timeless)]
    yield from _damage(what, rows, "Take them out with `compilewatch db remove-trials --impossible-samples`.")


def trials_of_impossible_samples(db: Database) -> list[str]:
    """The ids of all trials with a sample or an imported latency of 0 ns, which no record has any more."""
    stored = TRIAL_SAMPLES.c
    with db.read() as connection:
        trials = set(connection.scalars(_TIMELESS))
        statement = select(stored.trial_id, stored.n, stored.codec, stored.data)
        for row in connection.execution_options(yield_per=500).execute(statement):
            # An array that cannot be read is damage of its own.
            with contextlib.suppress(DatabaseError):
                if min(decode_samples(Blob(row.data, row.codec, row.n)), default=1) < 1:
                    trials.add(row.trial_id)
    return sorted(trials)


def _facts(connection: Connection) -> Iterator[Damage]:
    """What a trial has in columns, to be filtered and plotted, has to be what its record says."""
    columns = {
        each.at: each.place.split(".") for each in STORED if each.place.partition(".")[0] in DETAIL_PARTS
    }
    statement = select(TRIAL.c.trial_id, *(TRIAL.c[name] for name in columns)).add_columns(
        *(TRIAL_DETAIL.c[part].label(f"part_{part}") for part in DETAIL_PARTS)
    )
    joined = statement.join(TRIAL_DETAIL, TRIAL_DETAIL.c.trial_id == TRIAL.c.trial_id)
    wrong: dict[str, list[tuple[str]]] = defaultdict(list)
    timeless = set(connection.scalars(_TIMELESS))
    for row in connection.execute(joined.execution_options(yield_per=500)).mappings():
        if row["trial_id"] in timeless:
            continue
        parts = DETAIL.model_validate({part: row[f"part_{part}"] for part in DETAIL_PARTS})
        for name, place in columns.items():
            fact: Any = parts
            for step in place:
                fact = getattr(fact, step, None)
            if not _equal(fact, row[name]):
                wrong[name].append((row["trial_id"],))
    for name, rows in wrong.items():
        yield from _damage(f"{name} of {plural(len(rows), 'trial')} is not what the record says", rows)


def _follows(values: RowMapping, ordered: list[int]) -> bool:
    """Whether the figures of a trial are those of its array `kind`, in ascending order."""
    kind, headline = values["kind"], Headline((values["timing"] or {}).get("headline", Headline.SAMPLES))
    figures: dict[str, float | None] = {}
    if kind in _MEDIANS:
        figures[kind] = percentile_ns(ordered, 0.5)
    if kind == f"{headline.value}_ns":
        figures |= {name: percentile_ns(ordered, share) for name, share in _SHARES.items()}
        figures["samples"] = len(ordered)
    if kind == f"control_{headline.value}_ns":
        figures |= {"control_latency_ns": percentile_ns(ordered, 0.5), "control_samples": len(ordered)}
    return all(_same(values[name], figure) for name, figure in figures.items())


def _same(stored: float | None, computed: float | None) -> bool:
    if stored is None or computed is None:
        return stored is computed
    return math.isclose(stored, computed, rel_tol=_TOLERANCE)


def _tallies(connection: Connection) -> Iterator[Damage]:
    """The numbers of trials that lists and facets show beside every dimension."""
    for table, column in KEYS_OF_TRIALS.items():
        of_series = TRIAL.join(SERIES, SERIES.c.series_id == TRIAL.c.series_id)
        source, key = of_series if column.table is SERIES else TRIAL, table.c[column.name]
        trials = select(column.label("key"), func.count().label("trials")).select_from(source)
        counted = trials.group_by(column).subquery()
        wrong = table.c.trials != func.coalesce(counted.c.trials, 0)
        tallies = select(key).outerjoin(counted, counted.c.key == key).where(wrong)
        rows = connection.execute(tallies).all()
        yield from _damage(f"Wrong count of trials in {plural(len(rows), 'row')} of {table.name}", rows)


def _latest(connection: Connection) -> Iterator[Damage]:
    """The newest run of a series, which pages start from, has to be one of its own trials."""
    trial = and_(TRIAL.c.series_id == LATEST.c.series_id, TRIAL.c.run_id == LATEST.c.run_id)
    newer = and_(TRIAL.c.series_id == LATEST.c.series_id, TRIAL.c.started_at > LATEST.c.started_at)
    cancelled = and_(TRIAL.c.failure_kind.is_not(None), TRIAL.c.failure_kind == FailureKind.CANCELLED)
    latest = select(LATEST.c.series_id).where(
        or_(
            ~select(TRIAL.c.trial_id).where(trial).exists(),
            select(TRIAL.c.trial_id).where(newer, ~cancelled).exists(),
        )
    )
    rows = connection.execute(latest).all()
    yield from _damage(f"{len(rows)} series with a newest run not theirs", rows)


MADE_ANEW = "They were made anew of the trials: nothing is lost. Check again."
"""What is next where `db.store.trial_writer.rebuild` mends the damage."""


def _run_cases(connection: Connection) -> Iterator[Damage]:
    """What pages draw of a run: made anew of its trials it has to be the same.

    What another release made is no damage: the next upgrade of the database makes it anew.
    """
    if not is_current(connection):
        return
    wrong: list[tuple[str, str]] = []
    for runs, series in regions(workloads_of_runs(connection)):
        made, stored = (
            {tuple(row[key] for key in POINT_KEYS): row for row in rows}
            for rows in (summed_up(connection, runs, series), kept(connection, runs, series))
        )
        wrong += [
            (key[0], key[2])
            for key in sorted(made.keys() | stored.keys())
            if key not in made or key not in stored or not _alike(made[key], stored[key])
        ]
    what = f"{plural(len(wrong), 'row')} of run_case that the trials do not come to"
    yield from _damage(what, wrong, MADE_ANEW)


def _alike(made: dict[str, Any], stored: dict[str, Any]) -> bool:
    return all(_equal(value, stored[name]) for name, value in made.items())


def _equal(made: Any, stored: Any) -> bool:
    if made is None or stored is None or not isinstance(made, float):
        return bool(made == stored)
    return math.isclose(made, stored, rel_tol=_TOLERANCE)


def _damage(what: str, rows: Sequence[Sequence[Any]], next_step: str = _BACKUP) -> Iterator[Damage]:
    """With the first of `rows` as examples; nothing where there are none."""
    if rows:
        shown = ", ".join(" ".join(map(str, row)) for row in rows[:_EXAMPLES])
        more = ", ..." if len(rows) > _EXAMPLES else ""
        yield Damage(f"{what}: {shown}{more}.", len(rows), next_step)
