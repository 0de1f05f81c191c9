"""What the tab Trials says: everything of one process, or the newest trials to choose one from."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pandas as pd

from compilewatch.dashboard.links.links import Link
from compilewatch.dashboard.pages.trial import facts
from compilewatch.dashboard.pages.trial.one_trial import trial_parts
from compilewatch.dashboard.parts.model import facts as model_facts
from compilewatch.dashboard.parts.parts import (
    Badge,
    Badges,
    Empty,
    Figures,
    Lines,
    PageContent,
    PageHeadline,
    Part,
    Tone,
    notes,
)
from compilewatch.dashboard.parts.trials import CANCELLED, status_words, trials_table
from compilewatch.dashboard.read.data import (
    filters_of,
    of_workload,
    read_choices_on,
    read_newest_trials,
    read_ranks,
    read_trial,
    read_trials,
    read_workloads,
)
from compilewatch.dashboard.read.shaping import newest_builds
from compilewatch.dashboard.read.versions import cached
from compilewatch.db import units
from compilewatch.db.cause.trial_words import trial_bound
from compilewatch.db.cells import rows_of
from compilewatch.db.metrics.eligibility import WILD, wild_trials
from compilewatch.db.metrics.trial_times import latencies_ns
from compilewatch.db.queries.selection import Filters
from compilewatch.db.records.evidence import FailureKind
from compilewatch.db.records.identity import version_key
from compilewatch.db.records.ids import build_identity, series_identity
from compilewatch.db.records.trial import (
    SourceKind,
    Status,
    StrategyKind,
    Trial,
    timing_method_of,
    timing_text,
)

BADGES = "trial-badges"
MOST_ROWS = 500


@cached
def page(link: Link) -> PageContent:
    """The trial that `link` names, else the newest `MOST_ROWS` that its filters let through. Raises
    NotFoundError where there is no such trial.
    """
    return _one(link, read_trial(link.trial)) if link.trial else _list(link)


def _one(link: Link, trial: Trial) -> PageContent:
    siblings = same_case(trial)
    ids = [str(key) for key in siblings["trial_id"]]
    is_wild = trial.trial_id in set(siblings["trial_id"][wild_trials(siblings)])
    duration = trial.ended_at - trial.started_at if trial.ended_at else None
    lasted = f", took {units.duration(duration.total_seconds() * 1e9)}" if duration else ""
    place = (
        f"Trial {ids.index(trial.trial_id) + 1} of {len(ids)} of this case in run {trial.run_id}, "
        f"started {units.moment(trial.started_at)}{lasted}."
    )
    figures = facts.figures(trial)
    return PageContent(
        (
            _headline(trial),
            _badges(trial),
            *notes([place, *([f"Set aside, {WILD}."] if is_wild else [])]),
            *_failure(trial),
            *((Figures(figures),) if figures else ()),
            *trial_parts(trial, read_ranks(trial.trial_id)),
        ),
        link,
        builds=(build_identity(trial.build),),
        data=lambda: {"trial": trial.model_dump(mode="json")},
    )


def same_case(trial: Trial) -> pd.DataFrame:
    """The trials of this case in this run, oldest first."""
    of_case = Filters(
        runs=(trial.run_id,), workloads=(trial.workload.name,), strategies=(trial.strategy.name,)
    )
    trials = read_trials(of_case)
    mine: pd.DataFrame = trials[trials["series_id"] == series_identity(trial)]
    return mine


def _headline(trial: Trial) -> PageHeadline:
    """The case with its latency and speedup, or with how it failed."""
    case = f"{trial.workload.name} with {trial.strategy.name}"
    if trial.failure is not None:
        tone: Tone = "warning" if _was_cancelled(trial) else "bad"
        return PageHeadline(f"{case}: {units.words(trial.failure.kind.value)}", tone)
    latency_ns, eager_ns = latencies_ns(trial)
    if not latency_ns:
        return PageHeadline(case)
    speedup = f", speedup {units.ratio(eager_ns / latency_ns)}" if eager_ns else ""
    return PageHeadline(f"{case}: {units.duration(latency_ns)}{speedup}")


def _badges(trial: Trial) -> Badges:
    """Status, source, suspicion and timing."""
    badges = [_status(trial)]
    if trial.source.kind is SourceKind.IMPORTED:
        badges.append(Badge("imported"))
    if trial.device_state and trial.device_state.suspect:
        badges.append(Badge("suspect", "warning"))
    if trial.device_state and trial.device_state.throttle_reasons:
        badges.append(Badge("clock limited", "warning"))
    if times := timing_text(timing_method_of(trial), trial_bound(trial)):
        badges.append(Badge(times))
    # A program that torch.export made counts no graph of Dynamo's.
    compiles = trial.strategy.kind is StrategyKind.COMPILE
    if compiles and trial.compiler and trial.compiler.graphs == 0:
        badges.append(Badge("nothing compiled", "warning"))
    return Badges(tuple(badges), BADGES)


def _status(trial: Trial) -> Badge:
    if trial.status is Status.OK:
        return Badge("ok", "good")
    return Badge(CANCELLED, "warning") if _was_cancelled(trial) else Badge("failed", "bad")


def _was_cancelled(trial: Trial) -> bool:
    return trial.failure is not None and trial.failure.kind is FailureKind.CANCELLED


def _failure(trial: Trial) -> tuple[Part, ...]:
    """How the process ended, and the end of what it wrote."""
    failure = trial.failure
    if failure is None:
        return ()
    where = f" in {units.words(failure.phase)}" if failure.phase else ""
    how = [f"Exit code {failure.exit_code}."] if failure.exit_code is not None else []
    how += [f"Signal {failure.signal}."] if failure.signal is not None else []
    kind = units.words(failure.kind.value)
    cancelled = _was_cancelled(trial)
    title = f"Cancelled{where}" if cancelled else f"Failed: {kind}{where}"
    log = tuple(line for line in (failure.log_tail or "").splitlines() if line.strip())
    return (
        Lines((failure.message, *how), title, tone="warning" if cancelled else "bad"),
        *((Lines(log, "The end of its log", code=True),) if log else ()),
    )


# The list of trials to choose one from.


@cached
def models(link: Link) -> list[str]:
    """Those of which trials pass the filters of `link`."""
    return sorted(set(read_workloads(filters_of(link))["workload_label"]), key=version_key)


def _list(link: Link) -> PageContent:
    filters = filters_of(link)
    if link.focus:
        known = link.focus in models(link)
        link = link if known else replace(link, focus=None)
        filters = of_workload(filters, link.focus) if link.focus else filters
    frame, total = read_newest_trials(filters, MOST_ROWS)
    if link.focus and not (mine := frame[frame["workload_label"] == link.focus]).empty:
        total -= len(frame) - len(mine)
        frame = mine
    if frame.empty:
        of_run = f" of run {link.run}" if link.run else ""
        nothing = Empty(f"No trial{of_run} fits these filters.", "Widen them above.")
        return PageContent((nothing,), link)
    number = units.plural(total, "trial")
    shown = f"The newest {units.count(len(frame))} of {number}" if len(frame) < total else number
    return PageContent(
        (
            *model_facts(link),
            PageHeadline(f"{shown}, {', '.join(_ended(frame))}"),
            trials_table(frame, read_choices_on(link.machine).builds, of_one=link.focus is not None),
        ),
        link,
        builds=newest_builds(frame, "started_at"),
        data=lambda: {"trials": rows_of(frame.iloc[::-1])},
    )


def _ended(frame: pd.DataFrame) -> list[str]:
    """How many trials failed, and how many somebody stopped, if any: these have not failed."""
    words = Counter(status_words(frame))
    cancelled = words[CANCELLED]
    return [
        f"{units.count(words[Status.FAILED.value])} failed",
        *([f"{units.count(cancelled)} {CANCELLED}"] if cancelled else []),
    ]
