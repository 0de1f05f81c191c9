"""Which series a workload and a strategy by name stand for: a measured one wherever there is one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from pandas import DataFrame

from compilewatch.db.engine.session import Database
from compilewatch.db.errors import NotFoundError, did_you_mean
from compilewatch.db.judge.sequence import in_reading_order
from compilewatch.db.queries.cases.run_cases import points_by_run
from compilewatch.db.queries.filters import Filters
from compilewatch.db.queries.trials import trials_frame
from compilewatch.db.records.trial import SourceKind
from compilewatch.db.units import plural


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
        known = sorted(set(points["strategy"]))
        measured = f"Measured with: {', '.join(known) or 'nothing'}."
        raise NotFoundError(
            f"{workload} was never measured with {strategy!r}.", did_you_mean(strategy, known, measured)
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
