"""What the page Trial says: everything of one process, or the newest trials to choose one from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import pandas as pd

from dashboard.links.links import Link
from dashboard.pages.trial import facts
from dashboard.pages.trial.one_trial import trial_parts
from dashboard.parts import parts
from dashboard.parts.cases import CASE
from dashboard.parts.parts import (
    Badge,
    Badges,
    Column,
    Empty,
    Figures,
    Headline,
    Lines,
    PageContent,
    Part,
    Table,
    Tone,
    notes,
)
from dashboard.read.data import filters_of, read_choices_on, read_newest_trials, read_trial, read_trials
from dashboard.read.shaping import newest_builds, number
from dashboard.read.snapshots import Snapshot, cached
from dashboard.text.foreign_text import readable
from dashboard.text.rows import rows_of
from db import units
from db.cause.trials import trial_bound
from db.metrics.device_times import bound_of
from db.metrics.eligibility import wild_trials
from db.metrics.groups import floats, row_dicts
from db.metrics.throughput import items_of, items_per_step, per_second, throughputs_text
from db.metrics.wild import WILD
from db.queries.filters import Filters
from db.records.evidence import FailureKind
from db.records.ids import build_identity, series_identity
from db.records.marks import timing_text
from db.records.trial import SourceKind, Status, StrategyKind, Trial, timing_method_of

BADGES = "trial-badges"
LIST = "trial-table"
MOST_ROWS = 500
LONGEST_WHY = 200
_CANCELLED = "cancelled"
_TIMES = ("timing_method", "device_ns", "unflushed_ns", "wall_pipelined_ns")
_COLUMNS = {
    "workload": CASE["workload"],
    **parts.quantities("ns", {"latency": "Latency"}),
    "strategy": CASE["strategy"],
    # The first rows are "ok", which is shorter than "cancelled".
    "status": Column("Status", width_px=95),
    **parts.quantities("ratio", {"speedup": "Speedup"}),
    **parts.numbers({"rate": "Throughput (eager)"}),
    "started": Column("Started (UTC)", kind="moment"),
    "why": Column("Failure", wide=True),
    **parts.hidden(
        {
            **parts.quantities("ns", {"eager": "Eager latency", "first": "Time to first result"}),
            **parts.quantities("bytes", {"peak": "Peak memory"}),
            **parts.texts({"bound": "Timing", "build": "Build", "trial": "Trial"}),
        }
    ),
}


@cached
def page(snapshot: Snapshot, link: Link) -> PageContent:
    """The trial that `link` names, else the newest `MOST_ROWS` that its filters let through. Raises
    NotFoundError where there is no such trial.
    """
    return _one(snapshot, link, read_trial(snapshot, link.trial)) if link.trial else _list(snapshot, link)


def _one(snapshot: Snapshot, link: Link, trial: Trial) -> PageContent:
    siblings = same_case(snapshot, trial)
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
            *trial_parts(trial),
        ),
        link,
        builds=(build_identity(trial.build),),
        data=lambda: {"trial": trial.model_dump(mode="json")},
    )


def same_case(snapshot: Snapshot, trial: Trial) -> pd.DataFrame:
    """The trials of this case in this run, oldest first."""
    of_case = Filters(
        runs=(trial.run_id,), workloads=(trial.workload.name,), strategies=(trial.strategy.name,)
    )
    trials = read_trials(snapshot, of_case)
    mine: pd.DataFrame = trials[trials["series_id"] == series_identity(trial)]
    return mine


def _headline(trial: Trial) -> Headline:
    """The case with its latency and speedup, or with how it failed."""
    case = f"{trial.workload.name} with {trial.strategy.name}"
    if trial.failure is not None:
        tone: Tone = "warning" if _was_cancelled(trial) else "bad"
        return Headline(f"{case}: {units.words(trial.failure.kind.value)}", tone)
    latency_ns, eager_ns = facts.latencies(trial)
    if not latency_ns:
        return Headline(case)
    speedup = f", speedup {units.ratio(eager_ns / latency_ns)}" if eager_ns else ""
    return Headline(f"{case}: {units.duration(latency_ns)}{speedup}")


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
    return Badge(_CANCELLED, "warning") if _was_cancelled(trial) else Badge("failed", "bad")


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


def _list(snapshot: Snapshot, link: Link) -> PageContent:
    frame, total = read_newest_trials(snapshot, filters_of(link), MOST_ROWS)
    if frame.empty:
        of_run = f" of run {link.run}" if link.run else ""
        nothing = Empty(f"No trial{of_run} fits these filters.", "Widen them here or in the sidebar.")
        return PageContent((nothing,), link)
    number = units.plural(total, "trial")
    shown = f"The newest {units.count(len(frame))} of {number}" if len(frame) < total else number
    return PageContent(
        (
            Headline(f"{shown}, {', '.join(_ended(frame))}"),
            Table(
                LIST,
                "Trials, newest first, with status, latency, speedup and memory",
                trial_rows(frame, read_choices_on(snapshot, link.machine).builds),
                _COLUMNS,
                title="Trials, newest first",
            ),
        ),
        link,
        builds=newest_builds(frame, "started_at"),
        data=lambda: {"trials": rows_of(frame.iloc[::-1])},
    )


def _ended(frame: pd.DataFrame) -> list[str]:
    """How many trials failed, and how many somebody stopped, if any: these have not failed."""
    words = Counter(_status_words(frame))
    cancelled = words[_CANCELLED]
    return [
        f"{units.count(words[Status.FAILED.value])} failed",
        *([f"{units.count(cancelled)} {_CANCELLED}"] if cancelled else []),
    ]


def _status_words(frame: pd.DataFrame) -> list[str]:
    return [
        _CANCELLED if kind == FailureKind.CANCELLED.value else status
        for status, kind in zip(frame["status"].tolist(), frame["failure_kind"].tolist(), strict=True)
    ]


def trial_rows(frame: pd.DataFrame, builds: Mapping[str, str]) -> pd.DataFrame:
    """One row per trial of `frame`, which has the oldest first; here the newest. `builds`: names."""
    newest = frame.iloc[::-1]
    speedup = newest["control_latency_ns"].astype("Float64") / newest["latency_ns"]
    return pd.DataFrame(
        {
            "workload": newest["workload_label"],
            "strategy": newest["strategy"],
            "status": _status_words(newest),
            "why": [
                _why(*failure)
                for failure in zip(newest["failure_kind"], newest["failure_message"], strict=True)
            ],
            "rate": _rates(newest),
            "latency": newest["latency_ns"],
            "eager": newest["control_latency_ns"],
            "bound": list(map(_timing, *(newest[name].tolist() for name in _TIMES))),
            "speedup": speedup,
            "first": newest["time_to_first_result_ns"],
            "peak": newest["peak_bytes"],
            "build": newest["build_id"].map(dict(builds)),
            "started": newest["started_at"],
            "trial": newest["trial_id"],
        }
    )


def _rates(trials: pd.DataFrame) -> list[str]:
    items = items_per_step(trials)
    both = (per_second(items, floats(trials[name])).tolist() for name in ("latency_ns", "control_latency_ns"))
    labels = row_dicts(trials[["items_per_iteration", "batch_size", "item"]])
    return [
        throughputs_text(items_of(each)[1], own, eager)
        for each, own, eager in zip(labels, *both, strict=True)
    ]


def _timing(method: object, device_ns: Any, unflushed_ns: Any, wall_pipelined_ns: Any) -> str:
    """How the trial was timed and what bounds it: "gated, host-bound"; a dash on a CPU."""
    times = (number(unflushed_ns) or number(device_ns), number(wall_pipelined_ns))
    return timing_text(method, bound_of(method, *times)) or units.MISSING


def _why(kind: object, message: object) -> str | None:
    """Kind and message of a failure, in one line of bounded length; None where there was none."""
    if not isinstance(kind, str):
        return None
    text = units.words(kind) + (f": {readable(message)}" if isinstance(message, str) else "")
    return text if len(text) <= LONGEST_WHY else f"{text[: LONGEST_WHY - 1]}…"
