"""Which code of one's own each run measured, and which runs measured a commit."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from sqlalchemy import ColumnElement, Connection, Select, func, or_, select

from compilewatch.db.engine.tables import RUN, SERIES, TRIAL
from compilewatch.db.queries.facets import is_measured, is_whole
from compilewatch.db.records.identity import code_name

_PAGE = 500


class CommitRun(NamedTuple):
    """A run of a commit: how many of the cases that were asked for it has, and of their builds."""

    commit: str
    run_id: str
    cases: int
    same_builds: bool


def commits_of_run(connection: Connection, run_id: str) -> list[tuple[str, bool]]:
    """The commits that a run measured and whether each was dirty, the one of most trials first."""
    statement = (
        select(TRIAL.c.code_commit, TRIAL.c.code_dirty)
        .where(TRIAL.c.run_id == run_id, TRIAL.c.code_commit.is_not(None))
        .group_by(TRIAL.c.code_commit, TRIAL.c.code_dirty)
        .order_by(func.count().desc(), TRIAL.c.code_commit)
    )
    return [(row.code_commit, bool(row.code_dirty)) for row in connection.execute(statement)]


def is_of_unknown_code(connection: Connection, run_id: str) -> bool:
    """Whether a run says no code of cases that other runs measured as code of one's own: of a copy without
    its repository nobody knows the commit.
    """
    mine = select(TRIAL.c.series_id).where(TRIAL.c.run_id == run_id, TRIAL.c.code_hash.is_(None))
    of_code = select(TRIAL.c.trial_id).where(TRIAL.c.series_id.in_(mine), TRIAL.c.code_hash.is_not(None))
    return connection.scalar(of_code.limit(1)) is not None


def newest_run_of(connection: Connection, commit: str | None, machines: Collection[str]) -> str | None:
    """The newest run that was measured clean and whole at `commit` on one of `machines`; without one, of any
    code of one's own, known or not.
    """
    clean = or_(TRIAL.c.code_dirty.is_(None), TRIAL.c.code_dirty.is_(False))
    of_code = [TRIAL.c.code_commit == commit, clean] if commit else [TRIAL.c.code_hash.is_not(None)]
    here = select(SERIES.c.series_id).where(SERIES.c.machine_id.in_(list(machines)))
    mine = select(TRIAL.c.run_id).where(TRIAL.c.series_id.in_(here), *of_code)
    statement = select(RUN.c.run_id).where(RUN.c.run_id.in_(mine), is_whole(), is_measured())
    order = (RUN.c.first_seen_at.desc(), RUN.c.run_id.desc())
    return connection.scalars(statement.order_by(*order).limit(1)).first()


def runs_of_commits(
    connection: Connection, commits: Sequence[str], head: str, *, earlier: bool = False
) -> list[CommitRun]:
    """The clean runs of the first of `commits` that the cases of the run `head` were measured at; where none
    of its cases was, those of the first that was measured on its machine. The newest with most cases first.

    Runs that share none of the builds of `head` come last; those that were cut short are none. With
    `earlier` those alone that began before `head`.
    """
    of_head = select(TRIAL.c.series_id).where(TRIAL.c.run_id == head, TRIAL.c.code_commit.is_not(None))
    machines = select(SERIES.c.machine_id).where(SERIES.c.series_id.in_(of_head))
    here = select(SERIES.c.series_id).where(SERIES.c.machine_id.in_(machines))
    builds = set(connection.scalars(select(TRIAL.c.build_id).where(TRIAL.c.run_id == head).distinct()))
    whole = select(RUN.c.run_id).where(RUN.c.run_id != head, is_whole(), is_measured())
    if earlier:
        began = select(RUN.c.first_seen_at).where(RUN.c.run_id == head).scalar_subquery()
        whole = whole.where(RUN.c.first_seen_at < began)
    for wanted in (of_head, here):
        for start in range(0, len(commits), _PAGE):
            page = commits[start : start + _PAGE]
            of_series = TRIAL.c.series_id.in_(wanted)
            if found := _first_measured(connection, page, of_series, whole, builds):
                return found
    return []


def _first_measured(
    connection: Connection,
    commits: Sequence[str],
    of_series: ColumnElement[bool],
    whole: Select[tuple[str]],
    builds: Collection[str],
) -> list[CommitRun]:
    clean = or_(TRIAL.c.code_dirty.is_(None), TRIAL.c.code_dirty.is_(False))
    conditions = (TRIAL.c.code_commit.in_(commits), clean, of_series, TRIAL.c.run_id.in_(whole))
    rows = connection.execute(
        select(
            TRIAL.c.code_commit,
            TRIAL.c.run_id,
            TRIAL.c.build_id,
            func.count(TRIAL.c.series_id.distinct()).label("cases"),
            func.max(TRIAL.c.started_at).label("last"),
        )
        .where(*conditions)
        .group_by(TRIAL.c.code_commit, TRIAL.c.run_id, TRIAL.c.build_id)
    ).all()
    order = {commit: place for place, commit in enumerate(commits)}
    nearest = min((order[row.code_commit] for row in rows), default=None)
    if nearest is None:
        return []
    runs = [row for row in rows if order[row.code_commit] == nearest]
    runs.sort(key=lambda row: (row.build_id in builds, row.cases, row.last, row.run_id), reverse=True)
    return [CommitRun(row.code_commit, row.run_id, row.cases, row.build_id in builds) for row in runs]


def commits_like(connection: Connection, prefix: str) -> list[str]:
    """The measured commits whose hash begins so, the one measured last first."""
    statement = (
        select(TRIAL.c.code_commit)
        .where(TRIAL.c.code_commit.startswith(prefix, autoescape=True))
        .group_by(TRIAL.c.code_commit)
        .order_by(func.max(TRIAL.c.started_at).desc())
    )
    return [str(commit) for commit in connection.scalars(statement)]


def runs_of_commit(connection: Connection, commit: str, *, dirty: bool) -> list[str]:
    """The runs of a commit as it is, or with changes, the newest first."""
    is_dirty = TRIAL.c.code_dirty.is_(True)
    statement = (
        select(TRIAL.c.run_id)
        .where(
            TRIAL.c.code_commit == commit, is_dirty if dirty else or_(~is_dirty, TRIAL.c.code_dirty.is_(None))
        )
        .group_by(TRIAL.c.run_id)
        .order_by(func.max(TRIAL.c.started_at).desc(), TRIAL.c.run_id.desc())
    )
    return [str(run) for run in connection.scalars(statement)]


def interleaved_runs(
    connection: Connection,
    base: str,
    head: str,
    machine_id: str,
    *,
    but: Collection[str] = (),
    until_decided: bool = False,
) -> tuple[str, str] | None:
    """The newest whole runs of two commits, clean, that were measured by turns on a machine, that of `head`
    not among `but`; None where there are none. With `until_decided` those that were begun without a number of
    trials, whole or not.
    """
    begun = [RUN.c.status.is_not(None), RUN.c.planned_trials.is_(None)]
    which = begun if until_decided else [is_whole(), is_measured()]
    clean = or_(TRIAL.c.code_dirty.is_(None), TRIAL.c.code_dirty.is_(False))
    here = select(SERIES.c.series_id).where(SERIES.c.machine_id == machine_id)
    columns = (RUN.c.run_id, RUN.c.first_seen_at, RUN.c.last_seen_at)
    runs = []
    for commit in (base, head):
        mine = select(TRIAL.c.run_id).where(TRIAL.c.code_commit == commit, clean, TRIAL.c.series_id.in_(here))
        statement = select(*columns).where(RUN.c.run_id.in_(mine), RUN.c.run_id.not_in(list(but)))
        order = (RUN.c.first_seen_at.desc(), RUN.c.run_id.desc())
        runs.append(connection.execute(statement.where(*which).order_by(*order)).all())
    return next(
        (
            (old.run_id, new.run_id)
            for new in runs[1]
            for old in runs[0]
            if old.first_seen_at < new.last_seen_at and new.first_seen_at < old.last_seen_at
        ),
        None,
    )


def codes_of_runs(connection: Connection, run_ids: Collection[str]) -> dict[str, frozenset[str]]:
    """What each of these runs measured of one's own code, as `db.records.identity.code_name` calls it; a run
    of none has no entry.
    """
    columns = (TRIAL.c.run_id, TRIAL.c.code_commit, TRIAL.c.code_dirty, TRIAL.c.code_hash)
    statement = select(*columns).where(TRIAL.c.run_id.in_(list(run_ids)))
    names: dict[str, set[str]] = {}
    for run_id, *code in connection.execute(statement.distinct()):
        if (name := code_name(*code)) is not None:
            names.setdefault(run_id, set()).add(name)
    return {run_id: frozenset(found) for run_id, found in names.items()}
