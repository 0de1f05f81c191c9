"""`compilewatch history`: one series through time, with its changes."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from enum import StrEnum
from functools import partial
from typing import Annotated

import numpy as np
import typer
from pandas import DataFrame

from db.errors import NotFoundError
from db.judge import gateway
from db.metrics.groups import floats
from db.queries.filters import Filters
from db.queries.stored_names import require_stored
from db.records import SourceKind, TimingMethod
from db.units import plural
from db.verdicts.count_history import exact_events
from db.verdicts.history import judge_series, withdrawals
from db.verdicts.policy import Policy
from db.verdicts.releases import Compare, ReleaseStep, release_steps
from db.verdicts.results import ChangeEvent
from db.verdicts.sequence import builds_took_turns
from db.verdicts.vocabulary import Metric, Verdict
from db.wording.marks import UNGATED_MEANS, origin_mark_of
from db.wording.metrics import HISTORY_METRICS, METRICS
from runner.cli.changes import show_changes
from runner.cli.documents import print_document
from runner.cli.filters import only
from runner.cli.front import EXIT_CANNOT
from runner.cli.history_choice import chosen_points
from runner.cli.history_text import Told, history_document, history_sentences, history_table
from runner.cli.judging import exit_code
from runner.cli.options import ConfigOption, DatabaseOption, JsonOption, database_of, settings_of
from runner.cli.result_table import console
from runner.cli.target_outlook import target_outlooks
from runner.config import Settings

Judgeable = StrEnum("Judgeable", [(key.upper(), key) for key in HISTORY_METRICS])  # type: ignore[misc]
"""The metrics with noise; counts are read as they are with `compilewatch compare`."""
_SPEEDUP = Judgeable("speedup")


def history(
    workload: Annotated[
        str | None, typer.Option("--workload", "-w", metavar="W", help="A workload by name.")
    ] = None,
    strategy: Annotated[
        str | None, typer.Option("--strategy", "-s", metavar="S", help="A strategy by name.")
    ] = None,
    metric: Annotated[Judgeable, typer.Option(help="What is followed.")] = _SPEEDUP,
    machine: Annotated[
        str | None,
        typer.Option("--machine", metavar="ID", help="The machine; default: the longest measured history."),
    ] = None,
    reference: Annotated[
        str | None,
        typer.Option("--reference", metavar="BUILD", help="Build id that slow drift is measured against."),
    ] = None,
    json_: JsonOption = False,
    db: DatabaseOption = None,
    config: ConfigOption = None,
) -> int:
    """One case through time, run by run, with its changes; without a case, everything that changed.

    Example: compilewatch history --workload bert-base --strategy default --metric latency

    Runs in which builds took turns are read by release and judged from each release to the next. Exits 1 when
    the last change that stands is a regression or the series drifts for the worse, 2 when there are too few
    runs to tell.
    """
    settings = settings_of(config, db)
    if workload is None or strategy is None:
        with database_of(settings, migrate=False) as database:
            return show_changes(database, settings.policy, workload, strategy, machine, as_json=json_)
    judged_metric = Metric(metric.value)
    with database_of(settings, migrate=False) as database:
        names = Filters(workloads=(workload,), machines=only(machine), builds=only(reference))
        require_stored(database, names)
        points, trials, left_out = chosen_points(database, workload, strategy, machine)
        _require_values(points, judged_metric, strategy)
        _require_reference(points, reference)
        # Releases are judged as `compare` does: among all cases that were measured with them.
        compare = partial(
            gateway.compare,
            database,
            machine_id=str(points["machine_id"].iloc[-1]),
            policy=settings.policy,
        )
        told = _judge(points, trials, compare, judged_metric, settings, reference)
    sentences = [*_origin(points), *history_sentences(told), *left_out]
    if json_:
        print_document(history_document(points, told, sentences, settings.policy))
    else:
        out = console()
        for line in sentences:
            out.print(line, markup=False, highlight=False)
        out.print(history_table(points, told))
    return _exit_code(told, len(points), settings.policy)


def _judge(
    points: DataFrame,
    trials: DataFrame,
    compare: Compare,
    metric: Metric,
    settings: Settings,
    reference: str | None,
) -> Told:
    """`trials` are those of the workload on the machine; `compare` judges its releases."""
    policy = settings.policy
    judged = judge_series(points, metric, policy, reference_build=reference)
    newest = points.iloc[-1]
    ids = {str(each) for each in points["series_id"]}
    return Told(
        judged=judged,
        outlooks=target_outlooks(points, judged, settings.targets, policy),
        releases=release_steps(
            trials, compare, str(newest["workload_id"]), str(newest["strategy_id"]), metric
        ),
        exact=exact_events(trials[trials["series_id"].isin(ids)], policy),
        withdrawn=withdrawals(points, metric, policy) if not builds_took_turns(trials) else (),
    )


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


def _require_values(points: DataFrame, metric: Metric, strategy: str) -> None:
    if np.isfinite(floats(points[METRICS[metric].column])).any():
        return
    name = METRICS[metric].word
    if (points["strategy_kind"] == "eager").all():
        raise NotFoundError(f"{strategy} is eager and has no {name}.", "Ask for --metric latency.")
    raise NotFoundError(f"No run of this series has a {name}.", "Ask for another --metric.")


def _exit_code(told: Told, points: int, policy: Policy) -> int:
    """By the last release where builds took turns, else by what happened under today's conditions: what came
    before the last cut is another series.
    """
    judged = told.judged
    if told.releases:
        return _exit_code_of(told.releases[-1])
    start = judged.cuts[-1].index if judged.cuts else 0
    needed = 2 * policy.history.minimum_segment
    if points - start < needed:
        runs = plural(points - start, "run")
        print(
            f"compilewatch: Cannot tell: {runs} under one set of conditions, {needed} needed.",
            file=sys.stderr,
        )
        print("  Measure on, for instance every night with `compilewatch run`.", file=sys.stderr)
        return EXIT_CANNOT
    last = standing_change([event for event in judged.events if event.index >= start])
    drifts = judged.drift is not None and judged.drift.verdict is Verdict.REGRESSED
    return 1 if drifts or (last is not None and last.verdict is Verdict.REGRESSED) else 0


def _exit_code_of(last: ReleaseStep) -> int:
    code = exit_code(last.row.verdict)
    if code == EXIT_CANNOT:
        print(
            f"compilewatch: Cannot tell torch {last.base_torch} from {last.head_torch} here.",
            file=sys.stderr,
        )
        print("  Measure them again, taking turns, with more --trials.", file=sys.stderr)
    return code


def standing_change(events: Sequence[ChangeEvent]) -> ChangeEvent | None:
    """The last change that made the series better or worse; flips between two modes are neither."""
    sure = [event for event in events if event.verdict in (Verdict.REGRESSED, Verdict.IMPROVED)]
    return max(sure, key=lambda event: event.index, default=None)
