"""`compilewatch history`: one series through time, with its changes."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from functools import partial
from typing import Annotated

import numpy as np
import typer
from pandas import DataFrame

from db.columns.metrics import HISTORY_METRICS, METRICS
from db.engine.session import Database
from db.errors import ConfigError, NotFoundError
from db.judge.compare.sides import Selection, VerdictError
from db.judge.compare.whole import overall_verdict
from db.judge.history.counts import exact_events
from db.judge.history.machine import EventGroup
from db.judge.history.releases import Compare, release_steps
from db.judge.history.series import SeriesHistory, judge_series, withdrawals
from db.judge.history.stretches import find_cuts
from db.judge.policy import Policy
from db.judge.results import ChangeEvent, Comparison, Row
from db.judge.sequence import builds_interleaved, in_reading_order
from db.judge.words.sentences import confounded
from db.metrics.groups import floats
from db.queries.cases.run_cases import points_by_run
from db.queries.filters import Filters
from db.queries.named import require_stored
from db.queries.trials import trials_frame
from db.records.marks import UNGATED_MEANS, origin_mark_of
from db.records.trial import SourceKind, StrategyKind, TimingMethod
from db.records.versions import component_name
from db.records.vocabulary import CauseClass, Metric, Verdict
from db.units import moment, percent, plural
from db.verdicts import gateway
from db.verdicts.steps import machine_steps
from runner.cli import completion
from runner.cli.front import EXIT_CANNOT
from runner.cli.options import (
    ConfigOption,
    DatabaseOption,
    JsonOption,
    database_of,
    machine_named,
    only,
    settings_of,
)
from runner.cli.verdicts.judging import exit_code, newest_runs
from runner.config.settings import Settings
from runner.output.documents import print_document
from runner.output.failures import failure_lines, newest_failures
from runner.output.history_text import (
    HistoryReport,
    history_document,
    history_sentences,
    history_table,
    target_outlooks,
)
from runner.output.tables import console, print_lines

# Everything that changed on a machine, series that moved together as one: `history` without a case.

_NAMED_EVENTS = 6
_ORIGIN = ["series_id", "source_kind", "source_name", "timing_method"]


def show_changes(
    database: Database,
    policy: Policy,
    workload: str | None,
    strategy: str | None,
    machine: str | None,
    *,
    as_json: bool,
) -> int:
    """Print the grouped events of the machine with most runs, or of `machine`, newest last.

    1 when the last change of any series made it worse, else 0; of too few runs for a history what `gate` says
    of the newest two. Raises NotFoundError where nothing fits.
    """
    filters = Filters(workloads=only(workload), strategies=only(strategy))
    steps = machine_steps(database, filters, policy, machine=machine)
    groups, trials, compare = steps.groups, steps.trials, steps.compare
    runs = trials["run_id"].nunique()
    short = runs < _needed(policy) and not builds_interleaved(trials)
    newest = _newest_two(database, compare, set(trials["run_id"].astype(str))) if short else None
    # What became of the cases, and the largest change or what latency did.
    told = () if newest is None else newest.sentences[:2]
    more = f" The newest run against the one before: {' '.join(told)}" if told else ""
    marks = {
        row["series_id"]: origin_mark_of(row)
        for row in trials[_ORIGIN].drop_duplicates("series_id", keep="last").to_dict("records")
    }
    torch = dict(zip(trials["build_id"].astype(str), trials["torch"].astype(str), strict=True))
    if as_json:
        print_document(steps.document(more))
    else:
        print_lines(
            [f"{steps.sentence}.{more}", *(line for group in groups for line in _lines(group, torch, marks))]
        )
    if _is_worse(groups):
        return 1
    code = 0 if newest is None else exit_code(newest.verdict)
    if code == EXIT_CANNOT:
        print(
            f"compilewatch: Cannot tell: {plural(runs, 'run')} here, {_needed(policy)} needed.\n"
            "  Measure more runs, for instance nightly with `compilewatch run`.",
            file=sys.stderr,
        )
    return code


def _needed(policy: Policy) -> int:
    """The fewest runs in which a change of level is looked for."""
    return 2 * policy.history.minimum_segment


def _newest_two(database: Database, compare: Compare, runs: set[str]) -> Comparison | None:
    """The verdict of `gate` on the newest run, where it and the one before are among `runs`."""
    newest, before, _ = newest_runs(database)
    if before is None or not {*newest.run_ids, *before.run_ids} <= runs:
        return None
    try:
        return compare(before, newest)
    except VerdictError:
        return None


def _lines(group: EventGroup, torch: Mapping[str, str], marks: Mapping[str, str]) -> list[str]:
    """`torch`: the release of each build, which says when where builds took turns; `marks`: the mark of each
    imported series.
    """
    release = torch.get(group.build_id or "", "unknown")
    lines = [f"{moment(group.at) if group.at else f'torch {release}'}: {group.title}."]
    if group.confounded:
        lines.append(f"  {confounded(group.changed_components)}")
    elif group.changed_components:
        lines.append(f"  {component_name(group.changed_components[0])} changed with it.")
    lines += [f"  {_event(event, marks)}" for event in group.events[:_NAMED_EVENTS]]
    if rest := len(group.events) - _NAMED_EVENTS:
        lines += [f"  and {plural(rest, 'more event')}; --json has them all."] if rest > 0 else []
    return lines


def _event(event: ChangeEvent, marks: Mapping[str, str]) -> str:
    case = f"{event.workload}{marks.get(event.series_id or '', '')} / {event.strategy}"
    if event.verdict is Verdict.MISSING:
        return event.reason
    if event.p_value is None:
        return f"{case}: {METRICS[event.metric].word}: {event.reason}"
    return f"{case}: {METRICS[event.metric].word} {percent(event.change, signed=True)}"


def _is_worse(groups: Sequence[EventGroup]) -> bool:
    """By series and metric the last event decides; the groups come oldest first. What the machine explains is
    set aside, as `compare` and `gate` do.
    """
    last: dict[tuple[str | None, str], Verdict] = {}
    for group in groups:
        if group.cause is CauseClass.MACHINE:
            continue
        last |= {(event.series_id, event.metric.value): event.verdict for event in group.events}
    return any(verdict in (Verdict.REGRESSED, Verdict.MISSING) for verdict in last.values())


# Which series a workload and a strategy by name stand for: a measured one wherever there is one.


def chosen_points(
    database: Database, workload: str, strategy: str, machine: str | None
) -> tuple[DataFrame, DataFrame, list[str]]:
    """The points of one series as they are read, the trials of its workload there, and a sentence for what
    else has the same name. Imported results are read only where nothing was measured, on `machine` or, where
    that is None, anywhere. Raises NotFoundError where nothing has these names.
    """
    named = Filters(workloads=(workload,))
    points = points_by_run(database, named, ("strategy", "machine_id", "source_kind"))
    mine = points[points["strategy"] == strategy]
    if mine.empty:
        measured = ", ".join(sorted(set(points["strategy"]))) or "nothing"
        raise NotFoundError(
            f"{workload} was never measured with {strategy!r}.", f"Measured with: {measured}."
        )
    # By default the machine with the longest history, measured before imported.
    longest = _measured_first(mine)["machine_id"].value_counts().index[0]
    chosen = str(longest) if machine is None else machine
    there = replace(named, machines=(chosen,))
    on_machine = points_by_run(database, replace(there, strategies=(strategy,)))
    if on_machine.empty:
        raise NotFoundError(
            f"{workload} / {strategy} was never measured on machine {chosen}.",
            f"Measured on {', '.join(mine['machine_id'].value_counts().index)}.",
        )
    here = _of_one_source(on_machine)
    same = _like_the_newest(here)
    left_out = list(_elsewhere(mine, chosen)) if machine is None else []
    if imported := len(on_machine) - len(here):
        left_out.append(f"{plural(imported, 'imported point')} under this name left out.")
    if len(same) < len(here):
        other = plural(len(here) - len(same), "point")
        left_out.append(f"{other} of other sizes, dtypes or options under this name left out.")
    # Eager's trials come along: they are the control of compiled ones that have none of their own.
    trials = trials_frame(database, there)
    of_kind = trials[trials["source_kind"] == here["source_kind"].iloc[-1]]
    of_series = of_kind[of_kind["series_id"].isin(set(same["series_id"]))]
    return in_reading_order(same.reset_index(drop=True), of_series), of_kind, left_out


def _measured_first(points: DataFrame) -> DataFrame:
    """The measured ones among `points`; all of them where nothing was measured."""
    measured: DataFrame = points[points["source_kind"] == SourceKind.MEASURED]
    return points if measured.empty else measured


def _of_one_source(points: DataFrame) -> DataFrame:
    """What was measured; where nothing was, the imports of the format that brought the newest point."""
    first = _measured_first(points)
    newest = first.iloc[-1]
    if newest["source_kind"] == SourceKind.MEASURED:
        return first
    chosen: DataFrame = first[first["source_name"] == newest["source_name"]]
    return chosen


def _elsewhere(points: DataFrame, chosen: str) -> Iterator[str]:
    """Sentences for the machines beside the chosen one: those that measured, and those of imports alone."""
    of_kind = points.groupby("source_kind")["machine_id"].unique()
    measured, imported = (
        set(of_kind.get(kind, ())) - {chosen} for kind in (SourceKind.MEASURED, SourceKind.IMPORTED)
    )
    if measured:
        yield f"{plural(len(measured), 'more machine')} measured it too; name one with --machine."
    if alone := imported - measured:
        machines = plural(len(alone), "more machine")
        yield f"Imported results of {machines} left out; name one with --machine."


def _like_the_newest(points: DataFrame) -> DataFrame:
    """The points that measured what the newest one does, whatever the version of the workload's code."""
    newest = points.iloc[-1]
    alike = points["strategy_id"] == newest["strategy_id"]
    for name in ("task", "batch_size", "shape", "dtype"):
        alike &= points[name].map(str) == str(newest[name])
    chosen: DataFrame = points[alike]
    return chosen


Judgeable = StrEnum("Judgeable", [(key.upper(), key) for key in HISTORY_METRICS])  # type: ignore[misc]
"""The metrics with noise; counts are read as they are with `compilewatch compare`."""


def history(
    workload: Annotated[
        str | None,
        typer.Option(
            "--workload", "-w", metavar="W", help="A workload by name.", autocompletion=completion.workloads
        ),
    ] = None,
    strategy: Annotated[
        str | None,
        typer.Option(
            "--strategy", "-s", metavar="S", help="A strategy by name.", autocompletion=completion.strategies
        ),
    ] = None,
    metric: Annotated[
        Judgeable | None, typer.Option(help="The metric of the history; default: speedup, of eager latency.")
    ] = None,
    machine: Annotated[
        str | None,
        typer.Option(
            "--machine",
            metavar="NAME",
            help="The machine, by name or id; default: the longest measured history.",
            autocompletion=completion.machines,
        ),
    ] = None,
    reference: Annotated[
        str | None,
        typer.Option("--reference", metavar="BUILD", help="Build id as the reference of slow drift."),
    ] = None,
    across_versions: Annotated[
        bool,
        typer.Option(
            "--across-versions",
            help="Judge on across edits of the workload; each stands as a marked step.",
        ),
    ] = False,
    json_: JsonOption = False,
    db: DatabaseOption = None,
    config: ConfigOption = None,
) -> int:
    """One case run by run with its changes; without a case, every change of a machine.

    Example: compilewatch history --workload bert-base --strategy default --metric latency

    Interleaved runs are judged from each release to the next, too few runs for a history as `compare` judges
    the newest two. Exits 1 when the last change is a regression or the series drifts for the worse; 2 when
    nothing can be decided.
    """
    settings = settings_of(config, db)
    if workload is None or strategy is None:
        if metric or reference or across_versions:
            raise ConfigError(
                "--metric, --reference and --across-versions are of one case.",
                "Name it: --workload W --strategy S.",
            )
        with database_of(settings, migrate=False) as database:
            machine = machine_named(database, machine)
            return show_changes(database, settings.policy, workload, strategy, machine, as_json=json_)
    with database_of(settings, migrate=False) as database:
        require_stored(database, Filters(workloads=(workload,), builds=only(reference)))
        machine = machine_named(database, machine)
        points, trials, left_out = chosen_points(database, workload, strategy, machine)
        is_eager = (points["strategy_kind"] == StrategyKind.EAGER).all()
        followed = Metric(metric.value) if metric else Metric.LATENCY if is_eager else Metric.SPEEDUP
        failed = list(_failed(trials, strategy))
        _require_values(points, followed, strategy, failed)
        _require_reference(points, reference)
        # Releases are judged as `compare` does: among all cases that were measured with them.
        machine_id = str(points["machine_id"].iloc[-1])
        compare = partial(
            gateway.compare, database, machine_id=machine_id, policy=settings.policy, asked=(followed,)
        )
        versions = tuple(find_cuts(points[["workload_version"]])) if across_versions else ()
        if versions:
            points = points.assign(workload_version=points["workload_version"].iloc[-1])
        report = replace(_judge(points, trials, compare, followed, settings, reference), versions=versions)
    sentences = [*_origin(points), *history_sentences(report), *failed, *left_out]
    if json_:
        print_document(history_document(points, report, sentences, settings.policy))
    else:
        print_lines(sentences)
        console().print(history_table(points, report))
    return _exit_code(report, points, settings.policy)


def _judge(
    points: DataFrame,
    trials: DataFrame,
    compare: Compare,
    metric: Metric,
    settings: Settings,
    reference: str | None,
) -> HistoryReport:
    """`trials` are those of the workload on the machine; `compare` judges its releases."""
    policy = settings.policy
    series = judge_series(points, metric, policy, reference_build=reference)
    if builds_interleaved(trials) and "by_turns" not in points:
        # Builds that took turns changed nothing in time: their releases say what changed.
        series = series.model_copy(update={"events": ()})
    newest = points.iloc[-1]
    ids = {str(each) for each in points["series_id"]}
    case = str(newest["workload_id"]), str(newest["strategy_id"])
    releases = release_steps(trials, compare, *case, metric)
    in_time = _in_time(points, series)
    is_short = not releases and len(in_time) < _needed(policy)
    return HistoryReport(
        series=series,
        outlooks=target_outlooks(points, series, settings.target, policy),
        releases=releases,
        newest=_newest_step(in_time, compare, case, metric) if is_short else None,
        exact=tuple(
            event
            for event in exact_events(trials[trials["series_id"].isin(ids)], policy)
            if event.metric is not metric
        ),
        withdrawn=withdrawals(points, metric, policy) if not builds_interleaved(trials) else (),
    )


def _in_time(points: DataFrame, series: SeriesHistory) -> DataFrame:
    """The points under today's conditions, without builds that took turns: what came before the last cut is
    another series.
    """
    since: DataFrame = points.iloc[series.cuts[-1].index if series.cuts else 0 :]
    return since[~since["by_turns"]] if "by_turns" in points else since


def _newest_step(points: DataFrame, compare: Compare, case: tuple[str, str], metric: Metric) -> Row | None:
    """The verdict on the newest run of a case against the one before, as `compare` has it."""
    runs = list(dict.fromkeys(points["run_id"].astype(str)))[-2:]
    if len(runs) < 2:
        return None
    try:
        comparison = compare(*(Selection(name=run, run_ids=(run,)) for run in runs))
    except VerdictError:
        return None
    rows = comparison.with_asked().rows
    return next((row for row in rows if row.case.ids == case and row.metric is metric), None)


def _origin(points: DataFrame) -> Iterator[str]:
    """A sentence of its own for what was not measured here, or not gated."""
    newest = points.iloc[-1]
    if newest["source_kind"] == SourceKind.IMPORTED:
        yield f"{newest['workload']}{origin_mark_of(newest.to_dict())}: measured by another tool."
    elif newest["timing_method"] == TimingMethod.UNGATED:
        yield f"{newest['workload']}: {UNGATED_MEANS}"


def _require_reference(points: DataFrame, reference: str | None) -> None:
    if reference is not None and reference not in set(points["build_id"]):
        raise NotFoundError(
            f"No run of this series is of build {reference}.",
            f"Its builds: {', '.join(dict.fromkeys(points['build_id']))}.",
        )


def _failed(trials: DataFrame, strategy: str) -> Iterator[str]:
    """Why the newest trial of a series has no figure; nothing where it has one."""
    newest = trials[trials["strategy"] == strategy].tail(1)
    yield from (f"The newest trial failed: {line}" for line in failure_lines(newest_failures(newest)))


def _require_values(points: DataFrame, metric: Metric, strategy: str, failed: Sequence[str]) -> None:
    if np.isfinite(floats(points[METRICS[metric].column])).any():
        return
    name = METRICS[metric].word
    if (points["strategy_kind"] == "eager").all():
        raise NotFoundError(f"{strategy} is eager and has no {name}.", "Choose --metric latency.")
    hint = failed[0] if failed else "Choose another --metric."
    raise NotFoundError(f"No run of this series has a {name}.", hint)


def _exit_code(report: HistoryReport, points: DataFrame, policy: Policy) -> int:
    """By the last release where builds took turns, and by what happened in other runs under today's
    conditions: what came before the last cut is another series.
    """
    series = report.series
    start = series.cuts[-1].index if series.cuts else 0
    needed = _needed(policy)
    in_time = _in_time(points, series)
    released = exit_code(report.releases[-1].row.verdict) if report.releases else None
    if released is not None and ("by_turns" not in points or len(in_time) < needed):
        last_step = report.releases[-1]
        if released == EXIT_CANNOT:
            print(
                f"compilewatch: Cannot tell torch {last_step.base_torch} from {last_step.head_torch} here.\n"
                "  Measure them again interleaved, with more --trials.",
                file=sys.stderr,
            )
        return released
    if len(in_time) < needed:
        newest = EXIT_CANNOT if report.newest is None else exit_code(overall_verdict([report.newest], policy))
        if newest != EXIT_CANNOT:
            return newest
        runs = plural(len(in_time), "run")
        print(
            f"compilewatch: Cannot tell: {runs} under one set of conditions, {needed} needed.\n"
            "  Measure more runs, for instance nightly with `compilewatch run`.",
            file=sys.stderr,
        )
        return EXIT_CANNOT
    last = standing_change([event for event in series.events if event.index >= start])
    drifts = series.drift is not None and series.drift.verdict is Verdict.REGRESSED
    worse = last is not None and last.verdict is Verdict.REGRESSED
    return 1 if drifts or worse or released == 1 else 0


def standing_change(events: Sequence[ChangeEvent]) -> ChangeEvent | None:
    """The last change that made the series better or worse; flips between two modes are neither."""
    sure = [event for event in events if event.verdict in (Verdict.REGRESSED, Verdict.IMPROVED)]
    return max(sure, key=lambda event: event.index, default=None)
