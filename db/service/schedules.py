"""Schedules: what they say, whether they are paused, and their firings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection, func, or_, select, update

from compilewatch.db.engine.repository import Repository, upsert
from compilewatch.db.engine.session import Database
from compilewatch.db.engine.tables import (
    BUILD,
    FIRING,
    MACHINE,
    RUN_REQUEST,
    SCHEDULE,
    SCHEDULE_WATCH,
    SERIES,
    TRIAL,
)
from compilewatch.db.errors import NotFoundError
from compilewatch.db.queries.selection import read_records
from compilewatch.db.records.requests import (
    UNFINISHED,
    Firing,
    FiringOutcome,
    RunRequest,
    Schedule,
    ScheduleSpec,
    ScheduleWatch,
)
from compilewatch.db.records.trial import FailureKind
from compilewatch.db.service.requests import insert_request

SCHEDULES = Repository(Schedule, SCHEDULE)


def last_firings(db: Database) -> dict[str, Firing]:
    """The newest firing of every schedule that ever fired, by the schedule's name."""
    newest = select(FIRING.c.schedule, func.max(FIRING.c.fire_at).label("fire_at"))
    last = newest.group_by(FIRING.c.schedule).subquery()
    statement = select(FIRING).join(
        last, (FIRING.c.schedule == last.c.schedule) & (FIRING.c.fire_at == last.c.fire_at)
    )
    return {each.schedule: each for each in read_records(db, Firing, statement)}


def firings(db: Database, schedule: str, limit: int = 100) -> list[Firing]:
    """The newest firings of one schedule, newest first."""
    statement = select(FIRING).where(FIRING.c.schedule == schedule).order_by(FIRING.c.fire_at.desc())
    return read_records(db, Firing, statement.limit(limit))


def unfinished_request_of(connection: Connection, schedule: str) -> str | None:
    """The id of a request that a firing of `schedule` queued and that is not done, if there is one."""
    request_id: str | None = connection.scalar(
        select(RUN_REQUEST.c.request_id)
        .join(FIRING, FIRING.c.request_id == RUN_REQUEST.c.request_id)
        .where(FIRING.c.schedule == schedule, RUN_REQUEST.c.state.in_(UNFINISHED))
        .limit(1)
    )
    return request_id


def measured_stacks(db: Database, machine: str) -> set[tuple[str, str | None, str | None]]:
    """The torch releases, their variants and the drivers that the host called `machine` has trials of."""
    statement = (
        select(BUILD.c.torch, BUILD.c.torch_variant, BUILD.c.driver)
        .join(TRIAL, TRIAL.c.build_id == BUILD.c.build_id)
        .where(TRIAL.c.machine_name == machine)
        .distinct()
    )
    return {tuple(row) for row in db.rows(statement)}


def names_of_machine(db: Database, host: str) -> set[str]:
    """Everything the host called `host` is known as: its name, and the ids and devices of its machines."""
    statement = (
        select(MACHINE.c.machine_id, MACHINE.c.device_name)
        .join(SERIES, SERIES.c.machine_id == MACHINE.c.machine_id)
        .where(MACHINE.c.name == host)
        .distinct()
    )
    return {host}.union(*db.rows(statement))


MISSED_ROWS = 1_000
"""Of a longer silence the older firings are counted with the one that ended it."""
_NOT_PLANNED: dict[str, Any] = {"next_run_at": None, "upcoming": None}


def save_schedule(
    db: Database, name: str, spec: ScheduleSpec, *, at: datetime, from_config: bool = False
) -> None:
    """Create a schedule or change what it says; saying the same again changes nothing.

    Whether it is paused stays. Firings from before the change are not made up for.
    """
    content = {"spec": spec.model_dump(mode="json"), "from_config": from_config}
    with db.write() as connection:
        fresh = upsert(connection, SCHEDULE).on_conflict_do_nothing(index_elements=["name"])
        connection.execute(fresh.values(name=name, paused=False, active_since=at, **content))
        stored = connection.execute(
            select(SCHEDULE.c.spec, SCHEDULE.c.from_config).where(SCHEDULE.c.name == name).with_for_update()
        ).one()
        if (stored.spec, stored.from_config) != (content["spec"], from_config):
            changed = update(SCHEDULE).where(SCHEDULE.c.name == name)
            connection.execute(changed.values(active_since=at, **_NOT_PLANNED, **content))


def pause_schedule(db: Database, name: str, *, by: str, at: datetime) -> bool:
    """Let a schedule fire no more: False where it is paused already. Raises NotFoundError."""
    return _set_paused(db, name, {"paused": True, **_NOT_PLANNED, "changed_by": by, "changed_at": at})


def resume_schedule(db: Database, name: str, *, by: str, at: datetime) -> bool:
    """Let a paused schedule fire again, from `at` on: False where it is not paused. Raises NotFoundError."""
    return _set_paused(db, name, {"paused": False, "active_since": at, "changed_by": by, "changed_at": at})


def _set_paused(db: Database, name: str, values: dict[str, object]) -> bool:
    with db.write() as connection:
        paused = connection.scalar(select(SCHEDULE.c.paused).where(SCHEDULE.c.name == name).with_for_update())
        if paused is None:
            raise NotFoundError(f"There is no schedule {name!r}.", "See `compilewatch schedule list`.")
        if paused == values["paused"]:
            return False
        connection.execute(update(SCHEDULE).where(SCHEDULE.c.name == name).values(**values))
    return True


def note_next_runs(db: Database, name: str, upcoming: Sequence[datetime]) -> None:
    """Say when a schedule fires next and after that, for those who only look."""
    planned = {
        "next_run_at": upcoming[0] if upcoming else None,
        "upcoming": [at.astimezone(UTC).isoformat() for at in upcoming],
    }
    with db.write() as connection:
        connection.execute(update(SCHEDULE).where(SCHEDULE.c.name == name).values(**planned))


def claim_firing(
    db: Database,
    firing: Firing,
    request: RunRequest | None,
    *,
    missed_before: Callable[[datetime | None], Sequence[datetime] | None] | None = None,
) -> FiringOutcome | None:
    """Claim a firing and queue `request` with it: how it came out, None where another service has it.

    `missed_before` tells, given the newest firing of the schedule so far, those since then that nobody
    noticed; each gets a row that says `missed`, the newest `MISSED_ROWS` of them. None means that another
    service has this one with a later one. Where the request of an earlier firing is not done yet, nothing is
    queued and the outcome is `overrun`.
    """
    with db.write() as connection:
        row = firing.model_dump() | {"request_id": None}
        missed: Sequence[datetime] | None = ()
        if missed_before is not None:
            # No other firing is claimed between the count and the claim.
            connection.execute(
                select(SCHEDULE.c.name).where(SCHEDULE.c.name == firing.schedule).with_for_update()
            )
            newest = select(func.max(FIRING.c.fire_at)).where(FIRING.c.schedule == firing.schedule)
            missed = missed_before(connection.scalar(newest))
            if missed is None:
                return None
            row["firings"] = 1 + max(0, len(missed) - MISSED_ROWS)
        claim = upsert(connection, FIRING).on_conflict_do_nothing(index_elements=["schedule", "fire_at"])
        if connection.scalar(claim.values(**row).returning(FIRING.c.schedule)) is None:
            return None
        if missed:
            same = row | {"outcome": FiringOutcome.MISSED, "firings": 1}
            rows = [same | {"fire_at": at} for at in missed[-MISSED_ROWS:]]
            ignored = upsert(connection, FIRING).on_conflict_do_nothing(
                index_elements=["schedule", "fire_at"]
            )
            connection.execute(ignored, rows)
        outcome = firing.outcome
        if request is not None and unfinished_request_of(connection, firing.schedule) is not None:
            outcome, request = FiringOutcome.OVERRUN, None
        values: dict[str, object] = {"outcome": outcome}
        if request is not None:
            insert_request(connection, request)
            values["request_id"] = request.request_id
        this = (FIRING.c.schedule == firing.schedule, FIRING.c.fire_at == firing.fire_at)
        connection.execute(update(FIRING).where(*this).values(**values))
    return outcome


_RECENT_REQUESTS = 20


WATCHES = Repository(ScheduleWatch, SCHEDULE_WATCH)


def schedule_watches(db: Database) -> dict[str, ScheduleWatch]:
    """What is awaited of each schedule, by its name; those that never were watched are left out."""
    return {each.schedule: each for each in WATCHES.all(db)}


def silent_schedules(db: Database, now: datetime) -> list[ScheduleWatch]:
    """Schedules that are not paused and have produced nothing for a whole period, by name."""
    statement = (
        select(SCHEDULE_WATCH)
        .join(SCHEDULE, SCHEDULE.c.name == SCHEDULE_WATCH.c.schedule)
        .where(SCHEDULE_WATCH.c.due_at <= now, SCHEDULE.c.paused.is_(False))
        .order_by(SCHEDULE_WATCH.c.schedule)
    )
    return read_records(db, ScheduleWatch, statement)


def last_result_of(db: Database, schedule: str) -> datetime | None:
    """When the newest trial ended that a firing of `schedule` led to; cancelled ones are no result."""
    recent = (
        select(RUN_REQUEST.c.run_ids)
        .join(FIRING, FIRING.c.request_id == RUN_REQUEST.c.request_id)
        .where(FIRING.c.schedule == schedule)
        .order_by(FIRING.c.fire_at.desc())
        .limit(_RECENT_REQUESTS)
    )
    with db.read() as connection:
        run_ids = [run_id for (each,) in connection.execute(recent) for run_id in each]
        if not run_ids:
            return None
        newest: datetime | None = connection.scalar(
            select(func.max(func.coalesce(TRIAL.c.ended_at, TRIAL.c.started_at))).where(
                TRIAL.c.run_id.in_(run_ids), TRIAL.c.failure_kind.is_distinct_from(FailureKind.CANCELLED)
            )
        )
        return newest


def save_due(
    db: Database, schedule: str, *, last_result_at: datetime | None, due_at: datetime | None
) -> None:
    """Say by when a schedule must have produced something; None where nothing is awaited, as when paused."""
    content = {"last_result_at": last_result_at, "due_at": due_at}
    with db.write() as connection:
        statement = upsert(connection, SCHEDULE_WATCH).values(schedule=schedule, told_due_at=None, **content)
        connection.execute(statement.on_conflict_do_update(index_elements=["schedule"], set_=content))


def claim_silence(db: Database, schedule: str, due_at: datetime) -> bool:
    """Whether the caller is to tell people that nothing came by `due_at`: true once, for one caller."""
    watch = SCHEDULE_WATCH
    with db.write() as connection:
        claimed = connection.execute(
            update(watch)
            .where(
                watch.c.schedule == schedule,
                watch.c.due_at == due_at,
                or_(watch.c.told_due_at.is_(None), watch.c.told_due_at != due_at),
            )
            .values(told_due_at=due_at)
        )
        return claimed.rowcount == 1
