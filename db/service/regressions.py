"""Recorded regressions: whole, by their state, and as a table."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

import pandas as pd
from sqlalchemy import ColumnElement, Connection, Text, cast, func, select

from compilewatch.db.columns.metrics import METRICS
from compilewatch.db.engine.session import Database
from compilewatch.db.engine.tables import REGRESSION, SERIES, TRIAGE_EVENT, TRIAL
from compilewatch.db.errors import NotFoundError
from compilewatch.db.judge.compare.recorded_regressions import Regression, TriageEvent, changes_of, side_title
from compilewatch.db.queries.causes import recorded_explanations
from compilewatch.db.queries.selection import MOMENT, frame_of
from compilewatch.db.records.people import OPEN_STATES, TriageState
from compilewatch.db.records.vocabulary import Verdict

_DOCUMENT = cast(REGRESSION.c.document, Text)

REGRESSION_COLUMNS: dict[str, str] = {
    **{"regression_id": "str", "recorded_at": MOMENT},
    **dict.fromkeys(("machine_id", "machine", "workload", "task", "strategy", "metric", "unit"), "str"),
    **dict.fromkeys(("base", "head"), "str"),
    **dict.fromkeys(("base_value", "head_value"), "object"),
    **dict.fromkeys(("change", "change_low", "change_high"), "Float64"),
    **dict.fromkeys(("verdict", "cause", "who_moved", "state", "author"), "str"),
    **{"state_at": MOMENT, "note": "str", "url": "str", "revision": "Int64"},
    **dict.fromkeys(("revises", "revised_by", "reason", "timing_method", "bound", "explanation"), "str"),
    **dict.fromkeys(("tally", "now", "change_id"), "str"),
}
CHANGE_COLUMNS: dict[str, str] = {
    **{"change_id": "str", "recorded_at": MOMENT},
    **dict.fromkeys(("base", "head", "metric", "unit", "verdict", "who", "machines"), "str"),
    **dict.fromkeys(("cases", "open", "gone"), "Int64"),
    **dict.fromkeys(("worst", "median", "lost_ns", "cost_ns"), "float64"),
    "said": "str",
}
_PAGE = 500


class Later(NamedTuple):
    """A later side, by what tells it apart, its builds, and whether a regression is gone with it."""

    title: str
    build_ids: tuple[str, ...]
    is_gone: bool


@dataclass(frozen=True)
class RegressionState:
    """A recorded verdict, all that was said about it (oldest first), and the revision that replaced it.

    `later` is what a later build says of it (`db.verdicts.steps`): None where none does, or nobody asked.
    `steps` were timed of its case with its head.
    """

    regression: Regression
    triage: tuple[TriageEvent, ...]
    revised_by: str | None
    later: Later | None = None
    steps: int = 0

    @property
    def state(self) -> TriageState:
        """What was said last."""
        return self.triage[-1].state if self.triage else TriageState.NEW

    @property
    def is_open(self) -> bool:
        """Whether somebody still has to do something about it, and no later build takes it back."""
        return self.state in OPEN_STATES and not self.is_cured

    @property
    def is_cured(self) -> bool:
        """Whether it is gone with a later build and nobody has closed it."""
        return self.state in OPEN_STATES and self.later is not None and self.later.is_gone

    @property
    def now(self) -> str:
        """ "gone with torch 2.15.0", "still there with torch 2.15.0"; empty where no later build tells."""
        if self.later is None:
            return ""
        return f"{'gone' if self.later.is_gone else 'still there'} with {self.later.title}"


def regression_state(db: Database, regression_id: str) -> RegressionState:
    """One recorded verdict by its id, or by the first characters of it where only one fits.

    Raises NotFoundError.
    """
    with db.read() as connection:
        regression = find_regression(connection, regression_id)
        states = _with_states(connection, [regression])
    return states[0]


def standing_regressions(db: Database, *, machine_id: str | None = None) -> tuple[RegressionState, ...]:
    """Regressions that no later verdict replaced, oldest first; of all machines or of one."""
    with db.read() as connection:
        newest = [
            each
            for each in newest_revisions(connection, REGRESSION.c.verdict == Verdict.REGRESSED)
            if machine_id in (None, each.machine_id)
        ]
        states = _with_states(connection, newest)
    return with_steps(db, states)


def with_steps(db: Database, states: Sequence[RegressionState]) -> tuple[RegressionState, ...]:
    """`states`, each with how many steps were timed with its head."""
    steps = measured_steps(db, [each.regression for each in states])
    return tuple(replace(each, steps=steps[each.regression.regression_id]) for each in states)


def measured_steps(db: Database, regressions: Iterable[Regression]) -> dict[str, int]:
    """How many steps were timed with the head of each regression, of its case on its machine, by its id."""
    shown = tuple(regressions)
    runs = sorted({run for each in shown for run in each.head.run_ids})
    found: dict[tuple[str, str, str, str, str], int] = {}
    for chunk in _chunks(runs):
        keys = (SERIES.c.machine_id, SERIES.c.workload_id, SERIES.c.strategy_id)
        counted = (
            select(*keys, TRIAL.c.run_id, TRIAL.c.build_id, func.sum(TRIAL.c.samples))
            .join(SERIES, SERIES.c.series_id == TRIAL.c.series_id)
            .where(TRIAL.c.run_id.in_(chunk))
            .group_by(*keys, TRIAL.c.run_id, TRIAL.c.build_id)
        )
        found |= {tuple(row[:-1]): int(row[-1] or 0) for row in db.rows(counted)}
    return {
        each.regression_id: sum(
            found.get((each.machine_id or "", *each.row.case.ids, run, build), 0)
            for run in each.head.run_ids
            for build in each.head.build_ids
        )
        for each in shown
    }


def regressions_frame(
    db: Database,
    *,
    revised: bool = False,
    later: Callable[[Sequence[RegressionState]], Sequence[RegressionState]] = tuple,
) -> pd.DataFrame:
    """One row per recorded verdict, newest first; columns as `REGRESSION_COLUMNS`. `later` adds what later
    builds say (`db.verdicts.steps`), which is `now`.

    With `revised` also the verdicts that others replaced, and those that took a regression back. `base` and
    `head` are titles of the sides, `base_value` and `head_value` numbers in `unit`, "never" or a status.
    `explanation` says why the case changed, where records show it; `tally` what became of all cases compared.
    """
    with db.read() as connection:
        documents = connection.scalars(
            select(_DOCUMENT).order_by(REGRESSION.c.recorded_at.desc(), REGRESSION.c.regression_id)
        )
        states = _with_states(connection, [*map(_regression, documents)])
    shown = [
        each
        for each in states
        if revised or (each.revised_by is None and each.regression.row.verdict is Verdict.REGRESSED)
    ]
    shown = [*later(shown)]
    explained = recorded_explanations(db, [each.regression for each in shown])
    changes = changes_of(each.regression for each in shown if each.revised_by is None)
    change_ids = {each.regression_id: change.change_id for change in changes for each in change.regressions}
    cells = [
        _cells(each, change_ids.get(each.regression.regression_id), sentences)
        for each, sentences in zip(shown, explained, strict=True)
    ]
    return frame_of(cells, REGRESSION_COLUMNS)


def changes_frame(
    db: Database, *, later: Callable[[Sequence[RegressionState]], Sequence[RegressionState]] = tuple
) -> pd.DataFrame:
    """One row per change: what one step of the build did to all cases of a metric, the dearest first; columns
    as `CHANGE_COLUMNS`. Of its `cases` some are `open`, and of these some `gone` with a later build. `worst`
    and `median` are relative changes, `lost_ns` what a step of all cases takes longer, `cost_ns` that times
    the steps timed with the change. `later` as above.
    """
    by_id = {each.regression.regression_id: each for each in later(standing_regressions(db))}
    return frame_of(
        [
            (
                *(change.change_id, min(each.recorded_at for each in change.regressions)),
                *(change.base, change.head, change.metric.value, METRICS[change.metric].unit),
                *(change.verdict.value, change.who, ", ".join(change.machines)),
                *(len(states), sum(each.is_open for each in states), sum(each.is_cured for each in states)),
                *(change.worst.change, change.median_change, change.lost_ns, change.cost_ns, change.sentence),
            )
            for change in changes_of(
                (each.regression for each in by_id.values()),
                {regression_id: each.steps for regression_id, each in by_id.items()},
            )
            for states in [[by_id[each.regression_id] for each in change.regressions]]
        ],
        CHANGE_COLUMNS,
    )


def _cells(state: RegressionState, change_id: str | None, sentences: Sequence[str]) -> tuple[object, ...]:
    regression, row = state.regression, state.regression.row
    low, high = row.interval or (None, None)
    last = state.triage[-1] if state.triage else None
    changed = regression.changed_components
    return (
        *(regression.regression_id, regression.recorded_at, regression.machine_id, regression.machine),
        *(row.workload, row.case.task, row.strategy, row.metric.value, METRICS[row.metric].unit),
        *(side_title(side, changed) for side in (regression.base, regression.head)),
        *(row.base, row.head, row.change, low, high, row.verdict.value),
        row.cause.value if row.cause else None,
        row.who_moved.value if row.who_moved else None,
        state.state.value,
        *((last.author, last.at, last.note, last.url) if last else (None,) * 4),
        *(regression.revision, regression.revises, state.revised_by, row.reason),
        *(row.case.timing_method, row.bound, " ".join(sentences) or None, regression.tally_text),
        *(state.now or None, change_id),
    )


def find_regression(connection: Connection, regression_id: str) -> Regression:
    """The verdict with this id, or the only one whose id starts so. Raises NotFoundError."""
    column = REGRESSION.c.regression_id
    rows = connection.execute(
        select(column, _DOCUMENT.label("document"))
        .where(column.startswith(regression_id, autoescape=True))
        .order_by(column)
        .limit(2)
    ).all()
    if not regression_id or not rows:
        raise NotFoundError(
            f"There is no regression {regression_id!r}.", "See `compilewatch list regressions`."
        )
    if len(rows) > 1 and rows[0].regression_id != regression_id:
        raise NotFoundError(
            f"Several regressions start with {regression_id!r}.", "Give more characters of the id."
        )
    return _regression(rows[0].document)


def newest_revisions(connection: Connection, condition: ColumnElement[bool]) -> tuple[Regression, ...]:
    """The recorded verdicts under `condition` that no other replaced, oldest first."""
    replaced = select(REGRESSION.c.revises).where(REGRESSION.c.revises.is_not(None))
    documents = connection.scalars(
        select(_DOCUMENT)
        .where(condition, REGRESSION.c.regression_id.not_in(replaced))
        .order_by(REGRESSION.c.recorded_at, REGRESSION.c.regression_id)
    )
    return tuple(map(_regression, documents))


def states_of(connection: Connection, ids: Sequence[str]) -> dict[str, tuple[TriageEvent, ...]]:
    """What was said about each of `ids`, oldest first; nothing said, no entry."""
    events: dict[str, tuple[TriageEvent, ...]] = {}
    for chunk in _chunks(ids):
        rows = connection.execute(
            select(TRIAGE_EVENT)
            .where(TRIAGE_EVENT.c.regression_id.in_(chunk))
            .order_by(TRIAGE_EVENT.c.regression_id, TRIAGE_EVENT.c.number)
        ).mappings()
        for row in rows:
            event = TriageEvent(**{name: row[name] for name in TriageEvent.model_fields})
            events[row["regression_id"]] = (*events.get(row["regression_id"], ()), event)
    return events


def _with_states(connection: Connection, regressions: Sequence[Regression]) -> tuple[RegressionState, ...]:
    ids = [each.regression_id for each in regressions]
    states = states_of(connection, ids)
    revised: dict[str, str] = {}
    for chunk in _chunks(ids):
        rows = connection.execute(
            select(REGRESSION.c.revises, REGRESSION.c.regression_id).where(REGRESSION.c.revises.in_(chunk))
        )
        revised |= {row.revises: row.regression_id for row in rows}
    return tuple(
        RegressionState(each, states.get(each.regression_id, ()), revised.get(each.regression_id))
        for each in regressions
    )


def _chunks(ids: Sequence[str]) -> list[Collection[str]]:
    """SQLite takes a limited number of parameters in one statement."""
    return [ids[start : start + _PAGE] for start in range(0, len(ids), _PAGE)]


@lru_cache(maxsize=2_000)
def _regression(document: str) -> Regression:
    """What is recorded never changes: it is checked once, not with every look at the inbox."""
    return Regression.model_validate_json(document)
