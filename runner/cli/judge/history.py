"""`compilewatch history`: one series through time, with its changes."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from enum import StrEnum
from typing import Annotated, Any

import numpy as np
import pandas as pd
import typer
from pandas import DataFrame
from rich.table import Table
from rich.text import Text

from compilewatch.db.columns.metrics import BY_COLUMN, HISTORY_METRICS, METRICS
from compilewatch.db.engine.session import Database
from compilewatch.db.errors import ConfigError, NotFoundError
from compilewatch.db.judge.decide import MOVED
from compilewatch.db.judge.history.machine import EventGroup, ReleaseStep
from compilewatch.db.judge.history.series import TargetOutlook, target_outlooks
from compilewatch.db.judge.policy import Policy
from compilewatch.db.judge.results import ChangeEvent, Row
from compilewatch.db.judge.sentences import confounded
from compilewatch.db.judge.verdict_marks import marked
from compilewatch.db.metrics.groups import floats
from compilewatch.db.metrics.throughput import write_of
from compilewatch.db.queries.named import require_stored
from compilewatch.db.queries.selection import Filters
from compilewatch.db.records.identity import component_name
from compilewatch.db.records.trial import (
    UNGATED_MEANS,
    SourceKind,
    StrategyKind,
    TimingMethod,
    origin_mark_of,
)
from compilewatch.db.records.vocabulary import Metric, Verdict
from compilewatch.db.units import MISSING, interval, moment, percent, plural, words
from compilewatch.db.verdicts.case_history import CaseHistory, case_history, chosen_points
from compilewatch.db.verdicts.steps import machine_steps
from compilewatch.runner.cli import options
from compilewatch.runner.cli.front import EXIT_CANNOT
from compilewatch.runner.cli.judge.judging import exit_code
from compilewatch.runner.cli.options import (
    ConfigOption,
    DatabaseOption,
    JsonOption,
    database_of,
    machine_named,
    only,
    settings_of,
)
from compilewatch.runner.output.documents import print_document
from compilewatch.runner.output.tables import (
    console,
    failure_lines,
    newest_failures,
    plain_table,
    print_lines,
)

SCHEMA = "compilewatch.history/1"
SHOWN_POINTS = 40
"""Points in the table; older ones only where something changed."""

_FLIPS = "~ flips"
_STYLES = {Verdict.REGRESSED: "red", Verdict.IMPROVED: "green"}


def history_sentences(judged: CaseHistory, outlooks: Sequence[TargetOutlook]) -> Iterator[str]:
    """How long the history is and how noisy, each change, drift, and how far the targets are."""
    series = judged.series
    name = METRICS[series.metric].name
    noise = "" if series.noise is None else f", run-to-run variation {percent(series.noise)}"
    moved = [step for step in judged.releases if step.row.verdict in MOVED]
    changes = len(series.events) + len(moved)
    yield f"{name} over {plural(series.points, 'run')}{noise}, {plural(changes, 'change')}."
    for event in series.events:
        when = f"{moment(event.at)}: " if event.at is not None else ""
        reach = _ends_text(event.interval, "95 % interval") or "no interval"
        sure = "" if event.p_value is None else f" (p {event.p_value:.2g}, {reach})"
        yield f"{when}{event.reason}{sure}"
    for event in judged.withdrawn:
        yield f"{moment(event.at)}: announced then, taken back since: {event.reason}"
    for step in judged.releases:
        yield f"torch {step.base_torch} to {step.head_torch}: {_row_text(step.row)}"
    if judged.newest is not None:
        yield f"Too few runs for a history; the newest against the one before: {_row_text(judged.newest)}"
    for event in judged.exact:
        yield f"{moment(event.at)}: {METRICS[event.metric].name} {event.verdict.value}. {event.reason}"
    for cut in series.cuts:
        yield f"From point {cut.index + 1} on it is another series: {_named(cut.fields)} changed."
    for edit in judged.versions:
        yield f"From point {edit.index + 1} on the workload is another version; judged across it, as asked."
    if series.two_mode:
        yield "The series has two modes: the machine alternates between two states."
    if series.drift is not None and series.drift.verdict is not Verdict.UNCHANGED:
        yield series.drift.reason
    for outlook in outlooks:
        quantity = BY_COLUMN[outlook.quantity]
        title, write = quantity.word, quantity.write
        side = "at least" if outlook.at_least else "at most"
        yield f"Target of {title}, {side} {write(outlook.limit)}: {outlook.forecast.reason}."


def _row_text(row: Row) -> str:
    change = (percent(row.change, signed=True), _ends_text(row.interval, "interval"))
    return f"{row.verdict.value} ({', '.join(filter(None, change))}). {row.reason}"


def _ends_text(interval: tuple[float, float] | None, name: str) -> str:
    return "" if interval is None else name + " " + " to ".join(percent(end, signed=True) for end in interval)


def history_table(points: DataFrame, judged: CaseHistory) -> Table:
    """One row per run as they are read: the last ones, and earlier ones where something changed."""
    series = judged.series
    # All runs of a build say another number: commands and pages that have one value a build give that.
    figures = (f"{METRICS[series.metric].word}, run by run", "interval")
    table = plain_table(("date", "torch", *figures, "event"), right=figures)
    events = {event.index: event for event in series.events}
    cuts = {cut.index: cut for cut in series.cuts}
    edits = {step.index for step in judged.versions}
    steps = _first_points(points, judged.releases)
    first = max(0, len(points) - SHOWN_POINTS)
    rows = points.to_dict("records")
    shown = [i for i in range(len(rows)) if i >= first or i in {*events, *cuts, *edits}]
    for index in shown:
        event, cut = events.get(index), cuts.get(index)
        marks = [_mark(event)] if event else []
        if step := steps.get(index):
            marks.append(f"{marked(step.row.verdict)} {percent(step.row.change, signed=True)}")
        marks += [f"{_named(cut.fields)} changed"] if cut else []
        marks += ["another version of the workload"] if index in edits else []
        marks += ["suspect"] if rows[index]["point_suspect"] else []
        cells = (*_figures(rows[index], series.metric), "; ".join(marks))
        table.add_row(*(Text(cell) for cell in cells), style=_STYLES.get(event.verdict, "") if event else "")
    if len(shown) < len(rows):
        table.caption = f"{plural(len(rows) - len(shown), 'older run')} not shown; --json has them all."
    return table


def _first_points(points: DataFrame, releases: Sequence[ReleaseStep]) -> dict[int, ReleaseStep]:
    """By the position of each release's first point the step that led to it, if anything moved there."""
    builds = [str(each) for each in points["build_id"]]
    moved = (step for step in releases if step.row.verdict in _STYLES)
    return {builds.index(step.head_build): step for step in moved if step.head_build in builds}


def _mark(event: ChangeEvent) -> str:
    components = ", ".join(map(component_name, event.changed_components))
    changed = f", {components} changed" if components else ""
    verdict = _FLIPS if event.verdict is Verdict.INCONCLUSIVE else marked(event.verdict)
    step = f"from {event.before:g}" if event.change is None else percent(event.change, signed=True)
    return f"{verdict} {step}{changed}"


def _named(fields: Sequence[str]) -> str:
    return ", ".join(map(words, fields))


def _figures(row: Mapping[Any, Any], metric: Metric) -> tuple[str, ...]:
    value, low, high = _known(row, metric)
    write = write_of(METRICS[metric], row)
    bounds = interval(low, high, write, trials=row["counted_trials"])
    shown = MISSING if value is None else write(value)
    return moment(row["last_started_at"]), str(row["torch"]), shown, bounds


def history_document(
    points: DataFrame,
    judged: CaseHistory,
    outlooks: Sequence[TargetOutlook],
    sentences: Sequence[str],
    policy: Policy,
) -> dict[str, Any]:
    """What `history --json` prints: every point, the judgement, and the policy in force."""
    series = judged.series
    newest = points.iloc[-1]
    judgement = series.model_dump(mode="json", exclude={"points", "metric"})
    return {
        "schema": SCHEMA,
        "workload": str(newest["workload"]),
        "strategy": str(newest["strategy"]),
        "metric": series.metric.value,
        "unit": METRICS[series.metric].unit,
        "source_kind": str(newest["source_kind"]),
        "source_name": str(newest["source_name"]),
        "machine": {"id": str(newest["machine_id"]), "name": str(newest["machine"])},
        "trials_of": "run",
        "points": [_point(row, series.metric) for row in points.to_dict("records")],
        **judgement,
        "version_steps": [step.index for step in judged.versions],
        "releases": [step.model_dump(mode="json") for step in judged.releases],
        "newest": None if judged.newest is None else judged.newest.model_dump(mode="json"),
        "exact_events": [event.model_dump(mode="json") for event in judged.exact],
        "withdrawn": [event.model_dump(mode="json") for event in judged.withdrawn],
        "targets": [asdict(each) | {"forecast": each.forecast.model_dump(mode="json")} for each in outlooks],
        "sentences": list(sentences),
        "policy": policy.to_json(),
    }


def _known(row: Mapping[Any, Any], metric: Metric) -> tuple[Any, Any, Any]:
    """The value of a point, and the ends of its interval or else of its spread across trials."""
    entry = METRICS[metric]
    never = metric is Metric.BREAK_EVEN and row["break_even"] == "never"
    low, high = entry.interval or entry.band or (entry.column, entry.column)
    values = ("never" if never else row[entry.column], row[low], row[high])
    value, start, end = (None if pd.isna(each) else each for each in values)
    return value, start, end


def _point(row: Mapping[Any, Any], metric: Metric) -> dict[str, Any]:
    value, low, high = _known(row, metric)
    return {
        "run_id": row["run_id"],
        "build_id": row["build_id"],
        "torch": row["torch"],
        "started_at": row["last_started_at"],
        "value": value if value is None or value == "never" else float(value),
        "interval": None if low is None or high is None else [float(low), float(high)],
        "trials": int(row["trials"]),
        "suspect": bool(row["point_suspect"]),
    }


Judgeable = StrEnum("Judgeable", [(key.upper(), key) for key in HISTORY_METRICS])  # type: ignore[misc]
"""The metrics with noise; counts are read as they are with `compilewatch compare`."""


def history(
    workload: Annotated[
        str | None,
        typer.Option(
            "--workload", "-w", metavar="W", help="A workload by name.", autocompletion=options.workloads
        ),
    ] = None,
    strategy: Annotated[
        str | None,
        typer.Option(
            "--strategy", "-s", metavar="S", help="A strategy by name.", autocompletion=options.strategies
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
            autocompletion=options.machines,
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
            return _show_changes(database, settings.policy, workload, strategy, machine, as_json=json_)
    with database_of(settings, migrate=False) as database:
        require_stored(database, Filters(workloads=(workload,), builds=only(reference)))
        machine = machine_named(database, machine)
        points, trials, left_out = chosen_points(database, workload, strategy, machine)
        is_eager = (points["strategy_kind"] == StrategyKind.EAGER).all()
        followed = Metric(metric.value) if metric else Metric.LATENCY if is_eager else Metric.SPEEDUP
        failed = list(_failed(trials, strategy))
        _require_values(points, followed, strategy, failed)
        _require_reference(points, reference)
        judged = case_history(
            database,
            points,
            trials,
            followed,
            settings.policy,
            reference=reference,
            across_versions=across_versions,
        )
    outlooks = target_outlooks(points, judged.series, settings.target, settings.policy)
    sentences = [*_origin(points), *history_sentences(judged, outlooks), *failed, *left_out]
    if json_:
        print_document(history_document(points, judged, outlooks, sentences, settings.policy))
    else:
        print_lines(sentences)
        console().print(history_table(points, judged))
    return _exit_code(judged, settings.policy)


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


def _exit_code(judged: CaseHistory, policy: Policy) -> int:
    code = exit_code(judged.verdict(policy))
    if code != EXIT_CANNOT:
        return code
    if judged.is_by_release:
        last = judged.releases[-1]
        sentence = f"Cannot tell torch {last.base_torch} from {last.head_torch} here."
        how = "Measure them again interleaved, with more --trials."
    else:
        runs, needed = plural(judged.runs, "run"), policy.history.fewest_runs
        sentence = f"Cannot tell: {runs} under one set of conditions, {needed} needed."
        how = "Measure more runs, for instance nightly with `compilewatch run`."
    print(f"compilewatch: {sentence}\n  {how}", file=sys.stderr)
    return code


_NAMED_EVENTS = 6
_ORIGIN = ["series_id", "source_kind", "source_name", "timing_method"]


def _show_changes(
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
    trials, newest = steps.trials, steps.newest_two(database)
    # What became of the cases, and the largest change or what latency did.
    sentences = () if newest is None else newest.sentences[:2]
    more = f" The newest run against the one before: {' '.join(sentences)}" if sentences else ""
    if as_json:
        print_document(steps.document(more))
    else:
        marks = {
            row["series_id"]: origin_mark_of(row)
            for row in trials[_ORIGIN].drop_duplicates("series_id", keep="last").to_dict("records")
        }
        torch = dict(trials[["build_id", "torch"]].drop_duplicates("build_id").astype(str).to_numpy())
        shown = [line for group in steps.groups for line in _lines(group, torch, marks)]
        print_lines([f"{steps.sentence}.{more}", *shown])
    if steps.is_worse:
        return 1
    code = 0 if newest is None else exit_code(newest.verdict)
    if code == EXIT_CANNOT:
        runs = plural(trials["run_id"].nunique(), "run")
        print(
            f"compilewatch: Cannot tell: {runs} here, {policy.history.fewest_runs} needed.\n"
            "  Measure more runs, for instance nightly with `compilewatch run`.",
            file=sys.stderr,
        )
    return code


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
