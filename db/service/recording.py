"""Writes about regressions: verdicts as they are recorded, confirmations, and what people say about them.

Writes about messages: what is claimed for sending, and how the sending ended. Nothing is sent here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from sqlalchemy import Connection, and_, func, insert, or_, select, update

from compilewatch.db.engine.record_tables import JsonText
from compilewatch.db.engine.repository import bump_data_version, lock_data_version, upsert
from compilewatch.db.engine.session import Database
from compilewatch.db.engine.tables import NOTIFICATION, REGRESSION, SERIES, TRIAGE_EVENT
from compilewatch.db.errors import ConflictError, NotFoundError
from compilewatch.db.judge.compare.recorded_regressions import (
    EventSubject,
    FollowUp,
    Regression,
    TriageEvent,
    confirmation_of,
    events_of_rows,
    follow_up,
    freeze,
    side_keys,
)
from compilewatch.db.judge.decide import counts_as_regression
from compilewatch.db.judge.decide_again import is_same_step, is_within_accepted, needs_no_confirmation
from compilewatch.db.judge.results import Comparison, Row
from compilewatch.db.records.people import ACCEPTED, BY_THE_JUDGE, NotificationState, TriageState
from compilewatch.db.records.vocabulary import SOURCE_METRIC, Verdict
from compilewatch.db.service.regressions import find_regression, newest_revisions, states_of
from compilewatch.db.units import plural


@dataclass(frozen=True)
class Recorded:
    """What a comparison added: regressions never seen before, verdicts that replace others, and regressions
    that are sure now.
    """

    new: tuple[Regression, ...] = ()
    revised: tuple[Regression, ...] = ()
    confirmed: tuple[Regression, ...] = ()

    def __add__(self, other: Recorded) -> Recorded:
        return Recorded(self.new + other.new, self.revised + other.revised, self.confirmed + other.confirmed)

    def __bool__(self) -> bool:
        return bool(self.new or self.revised or self.confirmed)


def record_comparison(
    db: Database,
    comparison: Comparison,
    *,
    at: datetime,
    channels: Sequence[str] = (),
    fresh: bool = False,
    found_on: str | None = None,
) -> Recorded:
    """Record every regression of a comparison once, and what its verdicts mean for those recorded earlier.

    `fresh`: the comparison is itself the confirmation of a suspicion, so what it finds is confirmed at once.
    What somebody accepted on `found_on`, a pull request or branch, is not recorded again of its next commit.
    The same comparison again changes nothing. A figure of a source's own fails a comparison and is not
    recorded. What is confirmed is queued for each of `channels` in the same
    transaction, so that it is neither forgotten nor told twice.
    """
    base_key, head_key = side_keys(comparison)
    with db.write() as connection:
        lock_data_version(connection)
        newest = newest_revisions(
            connection, (REGRESSION.c.base_key == base_key) & (REGRESSION.c.head_key == head_key)
        )
        standing = {each.subject: each for each in newest if each.machine_id == comparison.machine_id}
        writer = _Writer(connection, comparison, at, channels, fresh=fresh, found_on=found_on)
        accepted = _accepted_on(connection, comparison, found_on)
        elsewhere = _of_other_bases(connection, comparison, (base_key, head_key))
        recorded_rows = (row for row in comparison.rows if not row.metric.startswith(SOURCE_METRIC))
        for subject, rows in events_of_rows(recorded_rows).items():
            known = standing.get(subject)
            if known is None and any(is_same_step(rows[0], each.row) for each in elsewhere.get(subject, ())):
                continue
            if known is None and any(
                is_within_accepted(rows, each.rows) for each in accepted.get(subject, ())
            ):
                continue
            row = rows[0]
            if known is not None and not counts_as_regression(row):
                row = next((each for each in rows if each.metric is known.row.metric), row)
            also = tuple(each for each in rows if each is not row and counts_as_regression(each))
            writer.apply(follow_up(row, comparison, known), row, known, also)
        recorded = writer.recorded
        if recorded:
            bump_data_version(connection)
    return recorded


def _of_other_bases(
    connection: Connection, comparison: Comparison, keys: tuple[str, str]
) -> dict[EventSubject, list[Regression]]:
    """What is recorded of the same head against another base: perhaps the same step, seen from further
    away."""
    found: dict[EventSubject, list[Regression]] = {}
    condition = (REGRESSION.c.head_key == keys[1]) & (REGRESSION.c.base_key != keys[0])
    for each in newest_revisions(connection, condition & (REGRESSION.c.verdict == Verdict.REGRESSED)):
        if each.machine_id == comparison.machine_id:
            found.setdefault(each.subject, []).append(each)
    return found


def _accepted_on(
    connection: Connection, comparison: Comparison, found_on: str | None
) -> dict[EventSubject, list[Regression]]:
    """What somebody accepted of this pull request or branch, at whatever commit."""
    found: dict[EventSubject, list[Regression]] = {}
    if found_on is None:
        return found
    standing = newest_revisions(connection, REGRESSION.c.verdict == Verdict.REGRESSED)
    mine = [
        each for each in standing if (each.machine_id, each.found_on) == (comparison.machine_id, found_on)
    ]
    states = states_of(connection, [each.regression_id for each in mine])
    for each in mine:
        events = states.get(each.regression_id, ())
        if events and events[-1].state in ACCEPTED:
            found.setdefault(each.subject, []).append(each)
    return found


def record_confirmation(
    db: Database,
    comparison: Comparison,
    regressions: Iterable[Regression],
    *,
    at: datetime,
    channels: Sequence[str] = (),
) -> Recorded:
    """Confirm or revise `regressions` by a comparison on fresh trials; nothing else of it is recorded.

    Regressions that were revised in the meantime are passed over.
    """
    ids = {each.regression_id for each in regressions}
    events = events_of_rows(comparison.rows)
    with db.write() as connection:
        lock_data_version(connection)
        newest = newest_revisions(connection, REGRESSION.c.regression_id.in_(ids)) if ids else ()
        writer = _Writer(connection, comparison, at, channels, fresh=False)
        for known in newest:
            rows = events.get(known.subject, [])
            same = (row for row in rows if row.metric is known.row.metric or counts_as_regression(row))
            row = next(same, None)
            outcome = None if row is None else confirmation_of(row, comparison.policy)
            if outcome is not None:
                writer.apply(*outcome, known)
        recorded = writer.recorded
        if recorded:
            bump_data_version(connection)
    return recorded


def triage(db: Database, regression_id: str, event: TriageEvent) -> bool:
    """Record what somebody says about a regression: False where that is its state already, word for word.

    Raises NotFoundError for an unknown id, ConflictError for a verdict that was revised.
    """
    with db.write() as connection:
        lock_data_version(connection)
        regression = find_regression(connection, regression_id)
        standing = newest_revisions(
            connection,
            (REGRESSION.c.series_id == regression.series_id)
            & (REGRESSION.c.base_key == regression.base_key)
            & (REGRESSION.c.head_key == regression.head_key),
        )
        newest = next(each for each in standing if each.subject == regression.subject)
        if newest.regression_id != regression.regression_id:
            raise ConflictError(
                f"The verdict {regression.regression_id} was revised.",
                f"Its newest revision is {newest.regression_id}: {newest.row.verdict.value}.",
            )
        events = states_of(connection, [regression.regression_id]).get(regression.regression_id, ())
        if events and events[-1].model_copy(update={"at": event.at}) == event:
            return False
        _save_event(connection, regression.regression_id, event)
        bump_data_version(connection)
    return True


def _save_event(connection: Connection, regression_id: str, event: TriageEvent) -> None:
    number = connection.scalar(
        select(func.coalesce(func.max(TRIAGE_EVENT.c.number), 0) + 1).where(
            TRIAGE_EVENT.c.regression_id == regression_id
        )
    )
    connection.execute(
        insert(TRIAGE_EVENT).values(regression_id=regression_id, number=number, **event.model_dump())
    )


@dataclass(frozen=True)
class _Writer:
    """Turns the rows of one comparison into recorded verdicts, inside the caller's transaction."""

    connection: Connection
    comparison: Comparison
    at: datetime
    channels: Sequence[str]
    fresh: bool
    found_on: str | None = None
    new: list[Regression] = field(default_factory=list)
    revised: list[Regression] = field(default_factory=list)
    confirmed: list[Regression] = field(default_factory=list)

    @property
    def recorded(self) -> Recorded:
        return Recorded(tuple(self.new), tuple(self.revised), tuple(self.confirmed))

    def apply(
        self, what: FollowUp | None, row: Row, known: Regression | None, also: tuple[Row, ...] = ()
    ) -> None:
        """Write what the verdict `row` means for what is `known` about its case."""
        if what is FollowUp.CONFIRM and known is not None:
            if not states_of(self.connection, [known.regression_id]):
                runs = ", ".join(self.comparison.head.run_ids)
                self._confirm(known, f"Found again on fresh trials of {runs}.")
        elif what in (FollowUp.RECORD, FollowUp.REVISE):
            series = known.series_id if known else self._series_id(row)
            fresh = freeze(
                *(self.comparison, row, series, self.at), revised=known, also=also, found_on=self.found_on
            )
            self._insert(fresh)
            (self.revised if known else self.new).append(fresh)
            if row.verdict is Verdict.REGRESSED and needs_no_confirmation(row):
                self._confirm(fresh, "Counted exactly: no confirmation is needed.")
            elif row.verdict is Verdict.REGRESSED and self.fresh:
                shown = plural(min(row.trials), "fresh trial")
                self._confirm(fresh, f"Suspected before, shown by {shown} a side.")

    def _series_id(self, row: Row) -> str:
        series_id: str | None = self.connection.scalar(
            select(SERIES.c.series_id).where(
                SERIES.c.machine_id == self.comparison.machine_id,
                SERIES.c.workload_id == row.case.workload_id,
                SERIES.c.strategy_id == row.case.strategy_id,
            )
        )
        if series_id is None:
            raise NotFoundError(
                f"{row.workload} / {row.strategy} was never stored in this database.",
                "Record regressions where their trials are.",
            )
        return series_id

    def _insert(self, regression: Regression) -> None:
        self.connection.execute(
            insert(REGRESSION).values(
                regression_id=regression.regression_id,
                series_id=regression.series_id,
                metric=regression.row.metric,
                base_key=regression.base_key,
                head_key=regression.head_key,
                revision=regression.revision,
                revises=regression.revises,
                verdict=regression.row.verdict,
                recorded_at=regression.recorded_at,
                document=JsonText(regression.model_dump_json()),
            )
        )

    def _confirm(self, regression: Regression, note: str) -> None:
        event = TriageEvent(state=TriageState.CONFIRMED, author=BY_THE_JUDGE, at=self.at, note=note)
        _save_event(self.connection, regression.regression_id, event)
        for channel in self.channels:
            self.connection.execute(
                upsert(self.connection, NOTIFICATION)
                .values(
                    regression_id=regression.regression_id,
                    channel=channel,
                    state=NotificationState.QUEUED,
                    deliveries=0,
                    changed_at=self.at,
                    problem=None,
                )
                .on_conflict_do_nothing(index_elements=["regression_id", "channel"])
            )
        self.confirmed.append(regression)


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
