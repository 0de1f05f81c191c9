"""Writes about messages: what is claimed for sending, and how the sending ended. Nothing is sent here."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta

from sqlalchemy import Connection, and_, or_, select, update

from compilewatch.db.engine.session import Database
from compilewatch.db.engine.writing import bump_data_version, lock_data_version
from compilewatch.db.judge.compare.recorded_regressions import Regression
from compilewatch.db.people.regressions import newest_revisions, states_of
from compilewatch.db.records.people import NotificationState, TriageState
from compilewatch.db.records.vocabulary import Verdict
from compilewatch.db.tables.trials import NOTIFICATION, REGRESSION

MOST_DELIVERIES = 5
"""A message that failed is taken up again by the next command that judges, this often."""

SENDING_TAKES = timedelta(hours=1)
"""A message that has been sending for longer belongs to a process that is no more."""


def claim_notifications(db: Database, channel: str, *, at: datetime) -> tuple[Regression, ...]:
    """The confirmed regressions to tell on `channel` now, oldest first, marked as being sent.

    No other process gets them. Those that were revised or triaged by a person meanwhile stay unsent; what a
    vanished process was sending may have arrived and becomes `unknown`.
    """
    with db.write() as connection:
        lock_data_version(connection)
        abandoned = _give_up_abandoned(connection, channel, at)
        claimed = _confirmed_and_waiting(connection, channel)
        begun = {"state": NotificationState.SENDING, "deliveries": NOTIFICATION.c.deliveries + 1}
        for each in claimed:
            this = (NOTIFICATION.c.channel == channel, NOTIFICATION.c.regression_id == each.regression_id)
            connection.execute(update(NOTIFICATION).where(*this).values(**begun, changed_at=at))
        if claimed or abandoned:
            bump_data_version(connection)
    return claimed


def _give_up_abandoned(connection: Connection, channel: str, at: datetime) -> int:
    """How many messages of vanished processes became `unknown`."""
    return connection.execute(
        update(NOTIFICATION)
        .where(
            NOTIFICATION.c.channel == channel,
            NOTIFICATION.c.state == NotificationState.SENDING,
            NOTIFICATION.c.changed_at < at - SENDING_TAKES,
        )
        .values(
            state=NotificationState.UNKNOWN,
            changed_at=at,
            problem="The process that sent it ended without a result.",
        )
    ).rowcount


def _confirmed_and_waiting(connection: Connection, channel: str) -> tuple[Regression, ...]:
    """Those that wait on `channel`, still stand as regressions, and whose last state is `confirmed`."""
    failed = NOTIFICATION.c.state == NotificationState.FAILED
    waiting = select(NOTIFICATION.c.regression_id).where(
        NOTIFICATION.c.channel == channel,
        or_(
            NOTIFICATION.c.state == NotificationState.QUEUED,
            and_(failed, NOTIFICATION.c.deliveries < MOST_DELIVERIES),
        ),
    )
    standing = newest_revisions(
        connection, (REGRESSION.c.verdict == Verdict.REGRESSED) & REGRESSION.c.regression_id.in_(waiting)
    )
    states = states_of(connection, [each.regression_id for each in standing])
    return tuple(
        each
        for each in standing
        if each.regression_id in states and states[each.regression_id][-1].state is TriageState.CONFIRMED
    )


def end_notifications(
    db: Database,
    channel: str,
    regression_ids: Collection[str],
    *,
    state: NotificationState,
    at: datetime,
    problem: str | None = None,
) -> None:
    """Say how the sending of claimed messages ended. `problem` must not hold the channel's address."""
    with db.write() as connection:
        lock_data_version(connection)
        connection.execute(
            update(NOTIFICATION)
            .where(
                NOTIFICATION.c.channel == channel,
                NOTIFICATION.c.regression_id.in_(regression_ids),
                NOTIFICATION.c.state == NotificationState.SENDING,
            )
            .values(state=state, changed_at=at, problem=problem)
        )
        bump_data_version(connection)
