"""Writes about schedules: what they say, whether they are paused, and who claimed a firing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import func, select, update

from compilewatch.db.engine.session import Database
from compilewatch.db.errors import NotFoundError
from compilewatch.db.queries.service.schedules import unfinished_request_of
from compilewatch.db.records.service.requests import RunRequest
from compilewatch.db.records.service.schedules import Firing, FiringOutcome, ScheduleSpec
from compilewatch.db.store.service.requests import insert_request
from compilewatch.db.store.writing import upsert
from compilewatch.db.tables.trials import FIRING, SCHEDULE

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
