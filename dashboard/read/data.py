"""What the pages read, at one data version, through caches keyed by that version.

Nothing here writes. Cached frames are shared between sessions and must not be changed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, time
from typing import Any, Concatenate, Literal, ParamSpec, TypeVar

import pandas as pd

from compilewatch.dashboard.links.links import Link, Page
from compilewatch.dashboard.read import shaping
from compilewatch.dashboard.read.choices import NEWEST_RUNS, Choices, choices
from compilewatch.dashboard.read.database import in_force, reader
from compilewatch.dashboard.read.versions import cached, drawn_version
from compilewatch.dashboard.text import theme
from compilewatch.db.columns.case import CASE_KEYS
from compilewatch.db.columns.metrics import POINT_COLUMNS
from compilewatch.db.engine.session import Database
from compilewatch.db.errors import NotFoundError
from compilewatch.db.judge.compare.sides import Selection
from compilewatch.db.judge.results import BuildSide, Comparison, Row
from compilewatch.db.judge.sequence import builds_interleaved, parts_by_turns
from compilewatch.db.metrics.cases import summarize_cases
from compilewatch.db.metrics.eligibility import is_canary, passed_mask, without_canaries
from compilewatch.db.queries import facets, named, records
from compilewatch.db.queries import run_parts as parts
from compilewatch.db.queries.case_parts import (
    cold_starts,
    newest_job_caches,
    newest_job_trials,
    rooflines,
)
from compilewatch.db.queries.causes import explained_case, explanation_lines, explanations
from compilewatch.db.queries.data_version import data_version
from compilewatch.db.queries.facets import measured_workloads, offered
from compilewatch.db.queries.history_points import known_columns, points_by_build, points_by_run
from compilewatch.db.queries.selection import Filters
from compilewatch.db.queries.trials import (
    count_trials,
    newest_profiled,
    newest_trials_frame,
    trials_frame,
    turn_trials,
    ungated_shown,
)
from compilewatch.db.records.evidence import CompilerFacts, RankFacts
from compilewatch.db.records.trial import SourceKind, Status, Task
from compilewatch.db.records.vocabulary import Metric
from compilewatch.db.service.annotations import stored_annotations
from compilewatch.db.service.regressions import RegressionState, standing_regressions
from compilewatch.db.verdicts import noise_floors
from compilewatch.db.verdicts.gateway import compare
from compilewatch.db.verdicts.steps import machine_steps, with_later

RECENT_RUNS = 30
"""How many runs a small history shows: as many points as a sparkline has room for."""
_MOST_EXPLAINED = 10


P = ParamSpec("P")
T = TypeVar("T")


def _found_by(query: Callable[Concatenate[Database, P], T]) -> Callable[P, T]:
    """What `query` finds in the database, cached."""

    def read(*args: P.args, **kwargs: P.kwargs) -> T:
        return query(reader(), *args, **kwargs)

    # By these caches tell functions apart.
    read.__module__, read.__qualname__ = query.__module__, query.__qualname__
    return cached(read)


_trials = _found_by(trials_frame)
_turn_trials = _found_by(turn_trials)
read_builds_newest_first = _found_by(parts.builds_newest_first)
read_annotations = _found_by(stored_annotations)
read_builds_of_newest_runs = _found_by(parts.builds_of_newest_runs)
read_known = _found_by(known_columns)
read_last_run = _found_by(parts.last_run)
read_machines = _found_by(facets.machines)
read_newest_two = _found_by(parts.newest_two)
read_noise_floors = _found_by(noise_floors.read_noise_floors)
read_rooflines = _found_by(rooflines)
read_series_by_build = _found_by(parts.series_by_build)
read_suites = _found_by(facets.suites_of_runs)
read_trial = _found_by(records.trial_record)
read_ungated = _found_by(ungated_shown)


@cached
def read_regressions() -> tuple[RegressionState, ...]:
    """The standing regressions, oldest first, each with what the newest later build says of it."""
    database = reader()
    known = read_choices().builds.keys()
    return tuple(
        each if each.later is None or known >= {*each.later.build_ids} else replace(each, later=None)
        for each in with_later(database, standing_regressions(database), in_force().policy)
    )


@cached
def read_choices() -> Choices:
    """What there is to choose from."""
    database = reader()
    return choices(offered(database, newest_runs=NEWEST_RUNS), facets.build_rows(database))


@cached
def read_choices_on(machine: str | None) -> Choices:
    """The same where a machine is chosen: only its builds are offered, and named relative to each other."""
    choices = read_choices()
    if machine is None:
        return choices
    return choices.on_machine(machine, read_builds(Filters(machines=(machine,))))


def _known(rows: pd.DataFrame) -> pd.DataFrame:
    """`rows` without builds and machines that `read_choices` does not name.

    While pages are still drawn of an earlier version, what was read before is kept and the rest is read now.
    What came in between waits for the next version with all that names it.
    """
    if data_version(reader()) == drawn_version():
        return rows
    choices_then = read_choices()
    chosen = rows["build_id"].isin(choices_then.builds.keys() & {*rows["build_id"]})
    chosen &= rows["machine_id"].isin(list(choices_then.machines))
    return rows if chosen.all() else rows[chosen].reset_index(drop=True)


@cached
def read_trials(filters: Filters) -> pd.DataFrame:
    """One row per trial, as `db.queries.trials.trials_frame` returns them, with labels added."""
    trials = _trials(filters)
    return shaping.with_labels(_known(trials))


@cached
def read_cases(filters: Filters) -> pd.DataFrame:
    """One row per case and build, as `db.metrics.cases.summarize_cases` returns them."""
    cases = summarize_cases(without_canaries(_trials(filters)))
    return shaping.with_labels(_known(cases))


def _cases_of(frame: pd.DataFrame, filters: Filters) -> pd.DataFrame:
    """`frame` without the machine's control series, unless workloads were chosen by name."""
    return frame if filters.workloads else without_canaries(frame)


@cached
def read_jobs(limit: int) -> pd.DataFrame:
    """The newest run of each job as cases, whatever machine and build: production has its own."""
    cases = summarize_cases(newest_job_trials(reader(), limit))
    return shaping.with_labels(_known(cases))


@cached
def read_job_caches(limit: int) -> dict[str, list[tuple[str, CompilerFacts]]]:
    """As `db.queries.cases.cold_start.newest_job_caches` returns them."""
    return newest_job_caches(reader(), limit)


@cached
def newest_build(filters: Filters) -> str | None:
    """The build of the newest trial among those that `filters` let through."""
    newest, known = parts.newest_build(reader(), filters), read_choices().builds
    if newest is None or newest in known:
        return newest
    return next((build for build in parts.measured_builds(reader(), filters) if build in known), None)


@cached
def read_cases_of_last_run(filters: Filters) -> pd.DataFrame:
    """`read_cases` of the newest run alone of the machines, builds and suites that `filters` let through."""
    run = read_last_run(filters)
    return read_cases(filters if run is None else replace(filters, runs=(run,)))


@cached
def read_builds(filters: Filters, *, only_measured: bool = False) -> frozenset[str]:
    """As `db.queries.run_parts.stored_builds` returns them."""
    return parts.stored_builds(reader(), filters, only_measured=only_measured) & read_choices().builds.keys()


@cached
def read_build_totals(filters: Filters) -> pd.DataFrame:
    """As `db.queries.run_parts.build_totals` returns them, of machines and suites."""
    whole = Filters(machines=filters.machines, suites=filters.suites)
    return parts.build_totals(reader(), whole)


@cached
def read_profiled(machine: str, cases: tuple[tuple[str, str], ...]) -> dict[tuple[str, str], str]:
    """As `db.queries.trials.newest_profiled` returns them, of the newest trials of each case."""
    return newest_profiled(reader(), machine, cases)


@cached
def read_advice(workload: str, machine: str) -> tuple[datetime, dict[str, Any]] | None:
    """As `db.queries.run_parts.newest_advice` returns it."""
    return parts.newest_advice(reader(), workload, machine)


@cached
def read_workloads(filters: Filters) -> pd.DataFrame:
    """One row per workload of those trials, with labels added, as `measured_workloads` returns them."""
    workloads = measured_workloads(reader(), filters)
    return shaping.with_labels(_cases_of(workloads, filters))


@cached
def read_strategies(filters: Filters) -> list[str]:
    """The strategies of those trials, in the order in which strategies are always shown."""
    return theme.ordered(facets.measured_strategies(reader(), filters))


def of_workload(filters: Filters, label: str) -> Filters:
    """`filters` narrowed to the workload called `label` under them, and to its namesakes of other sizes."""
    known = read_workloads(filters)
    names = known.loc[known["workload_label"] == label, "workload"]
    return replace(filters, workloads=(label,) if names.empty else (str(names.iloc[0]),))


@cached
def read_comparison(
    filters: Filters,
    base: str | Selection,
    head: str | Selection,
    *,
    asked: Metric | None = None,
    base_runs: tuple[str, ...] = (),
    head_runs: tuple[str, ...] = (),
) -> Comparison:
    """The verdict on build or side `head` against `base`, on the machine that `filters` name. Of builds the
    runs `base_runs` and `head_runs` alone where there are any.

    Raises VerdictError where the two cannot be set against each other.
    """
    machine = filters.machines[0] if len(filters.machines) == 1 else None
    names = read_choices_on(machine).builds
    first, second = (
        side if isinstance(side, Selection) else side_of(names.get(side, side), side, runs)
        for side, runs in ((base, base_runs), (head, head_runs))
    )
    further = () if asked is None else (asked,)
    return compare(reader(), first, second, filters, policy=in_force().policy, asked=further)


def read_pair(link: Link, *, asked: Metric | None = None) -> Comparison:
    """`read_comparison` of the builds and runs that `link` names."""
    base, head = str(link.base), str(link.head)
    return read_comparison(
        filters_of(link),
        base,
        head,
        asked=asked,
        base_runs=link.base_run,
        head_runs=link.head_run,
    )


def side_of(name: str, build: str, runs: tuple[str, ...]) -> Selection:
    """A build as a side of a comparison, or some runs of it."""
    of_runs = f", run {', '.join(runs)}" if runs else ""
    return Selection(name=f"{name}{of_runs}", build_ids=(build,), run_ids=runs)


@cached
def read_explanation(
    machine_id: str | None, sides: tuple[BuildSide, BuildSide], rows: tuple[Row, ...]
) -> list[str]:
    """Why one case changed between base and head, in sentences, by the verdicts `rows` on it."""
    return explained_case(reader(), *sides, machine_id, rows)


def read_explanations(comparison: Comparison) -> list[str]:
    """Why the cases of a comparison changed, a sentence a line."""
    by_case = explanations(reader(), comparison)
    return explanation_lines(comparison, by_case, most=_MOST_EXPLAINED, rest_in="the evidence of each")


@cached
def read_runs(newest: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The newest runs as `db.queries.facets.runs` returns them, and their machines and builds."""
    database = reader()
    rows = facets.runs(database, newest=newest)
    return rows, _known(parts.run_parts(database, rows["run_id"]))


def read_former_names() -> list[tuple[str, str]]:
    """As `db.queries.named.former_machine_names` returns them."""
    return named.former_machine_names(reader())


@cached
def read_interleaved(filters: Filters) -> bool:
    """Whether builds among these trials took turns, so that they have no before and after in time."""
    return builds_interleaved(_turn_trials(filters))


@cached
def read_turns(filters: Filters) -> frozenset[tuple[str, str]]:
    """The run and build of those trials that were measured by turns with another build."""
    return parts_by_turns(_turn_trials(filters))


@cached
def read_points(
    filters: Filters,
    by: Literal["run", "build"] = "run",
    columns: tuple[str, ...] | None = None,
) -> pd.DataFrame:
    """One row per case and run or build, oldest first, as `db.metrics.trend.series_points` returns them, with
    labels added; with `columns` little more than those of them that points have.
    """
    read = points_by_run if by == "run" else points_by_build
    names = None
    if columns is not None:
        wanted = dict.fromkeys((*shaping.NAMING_COLUMNS, *CASE_KEYS, *columns))
        names = [name for name in wanted if name in POINT_COLUMNS]
    points = _cases_of(read(reader(), filters, names), filters)
    return shaping.with_labels(_known(points))


MOST_TRIALS_JUDGED = 2_000
"""Of so many trials a page tells every step in their history; longer ones are for `compilewatch history`."""


@cached
def read_steps(machine: str, filters: Filters) -> str:
    """How many steps the history of a machine shows, as `compilewatch history` says it."""
    database = reader()
    trials = count_trials(database, replace(filters, machines=(machine,)))
    if trials > MOST_TRIALS_JUDGED:
        command = f"compilewatch history --machine {machine}"
        return f"{trials:,} trials: `{command}` tells every change in their history."
    try:
        return f"{machine_steps(database, filters, in_force().policy, machine=machine).sentence}."
    except NotFoundError:
        return ""


def recent(filters: Filters, *, up_to: str | None = None, runs: int = RECENT_RUNS) -> Filters:
    """`filters` narrowed to the newest `runs`, with `up_to` those up to that build's last one."""
    database = reader()
    if up_to is not None:
        filters = replace(filters, until=parts.last_measured_at(database, replace(filters, builds=(up_to,))))
    began = parts.newest_runs_began(database, filters, runs)
    if began is None or (filters.since is not None and filters.since > began):
        return filters
    return replace(filters, since=began)


@cached
def read_newest_trials(filters: Filters, limit: int) -> tuple[pd.DataFrame, int]:
    """The newest trials, oldest first, with labels added, and how many there are in all: without those of
    the machine's control series, unless workloads or a run were chosen.
    """
    database = reader()
    trials = _known(newest_trials_frame(database, filters, limit))
    total = count_trials(database, filters)
    if filters.workloads or filters.runs:
        return shaping.with_labels(trials), total
    canaries = tuple(filter(is_canary, measured_workloads(database, filters)["workload"]))
    if canaries:
        trials = without_canaries(trials)
        total -= count_trials(database, replace(filters, workloads=canaries))
    return shaping.with_labels(trials), total


@cached
def read_cold_start(filters: Filters) -> shaping.ColdStarts:
    """What the processes of passed trials spent until their first results, phase by phase."""
    return starts_of(_known(_trials(filters)))


def starts_of(trials: pd.DataFrame) -> shaping.ColdStarts:
    """The same of those of `trials` that passed."""
    passed = trials[passed_mask(trials)]
    return shaping.with_phases(passed, cold_starts(reader(), passed["trial_id"].tolist()))


@cached
def read_ranks(trial_id: str) -> list[RankFacts]:
    """What the ranks that took a trial's steps together compiled; empty where there is one process."""
    return records.ranks_of(reader(), read_trial(trial_id))


def filters_of(link: Link) -> Filters:
    """The database filters that a settled link stands for."""
    per_trial = link.page is Page.TRIAL
    return Filters(
        workloads=link.workload,
        # Elsewhere eager must stay in: others are set against it.
        strategies=link.strategy if per_trial else (),
        machines=(link.machine,) if link.machine else (),
        builds=(link.build,) if link.build else (),
        suites=(link.suite,) if link.suite else (),
        tasks=tuple(Task(task) for task in link.task),
        runs=(link.run,) if per_trial and link.run else link.build_run,
        since=datetime.combine(link.since, time.min, UTC) if link.since else None,
        until=datetime.combine(link.until, time.max, UTC) if link.until else None,
        statuses=tuple(Status(status) for status in link.status) if per_trial else (),
        sources=tuple(SourceKind(kind) for kind in link.source) if per_trial else (),
    )
