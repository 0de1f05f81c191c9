"""Everything that changed on a machine, series that moved together as one: `history` without a case."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from pandas import DataFrame

from db.errors import NotFoundError
from db.judge import gateway
from db.queries.filters import Filters
from db.queries.stored_names import require_stored
from db.queries.trials import trials_frame
from db.session import Database
from db.units import count, moment, percent, plural, words
from db.verdicts.grouping import EventGroup
from db.verdicts.machine_history import machine_history
from db.verdicts.policy import Policy
from db.verdicts.results import ChangeEvent
from db.verdicts.sentences import confounded
from db.verdicts.vocabulary import Verdict
from db.wording.marks import origin_mark_of
from db.wording.metrics import METRICS
from runner.cli.documents import print_document
from runner.cli.filters import only
from runner.cli.result_table import console

SCHEMA = "compilewatch.changes/1"
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

    1 when the last change of any series made it worse, else 0. Raises NotFoundError where nothing fits.
    """
    filters = Filters(workloads=only(workload), strategies=only(strategy))
    require_stored(database, replace(filters, machines=only(machine)))
    trials = _of_one_machine(trials_frame(database, filters), machine)
    compare = partial(
        gateway.compare,
        database,
        filters=filters,
        machine_id=str(trials["machine_id"].iloc[-1]),
        policy=policy,
    )
    groups = machine_history(trials, compare, policy)
    name = str(trials["machine"].iloc[-1])
    runs, series = trials["run_id"].nunique(), trials["series_id"].nunique()
    measured = f"{count(series)} series over {plural(runs, 'run')} on {name}"
    summary = f"{plural(len(groups), 'change')} in {measured}."
    marks = {
        row["series_id"]: origin_mark_of(row)
        for row in trials[_ORIGIN].drop_duplicates("series_id", keep="last").to_dict("records")
    }
    torch = dict(zip(trials["build_id"].astype(str), trials["torch"].astype(str), strict=True))
    if as_json:
        print_document(_document(trials, groups, summary, policy))
    else:
        out = console()
        for line in (summary, *(line for group in groups for line in _lines(group, torch, marks))):
            out.print(line, markup=False, highlight=False)
    return 1 if _stands_worse(groups) else 0


def _of_one_machine(trials: DataFrame, machine: str | None) -> DataFrame:
    runs = trials.groupby("machine_id")["run_id"].nunique().sort_values(kind="stable")
    if runs.empty:
        raise NotFoundError("No stored trial fits these filters.", "See `compilewatch list runs`.")
    chosen = str(runs.index[-1]) if machine is None else machine
    if chosen not in runs:
        known = ", ".join(str(each) for each in runs.index)
        raise NotFoundError(f"Nothing was measured on machine {chosen}.", f"Measured on {known}.")
    return trials[trials["machine_id"] == chosen]


def _lines(group: EventGroup, torch: Mapping[str, str], marks: Mapping[str, str]) -> list[str]:
    """`torch`: the release of each build, which says when where builds took turns; `marks`: the mark of each
    imported series.
    """
    release = torch.get(group.build_id or "", "unknown")
    said = [f"{moment(group.at) if group.at else f'torch {release}'}: {group.title}."]
    if group.confounded:
        said.append(f"  {confounded(group.changed_components)}")
    elif group.changed_components:
        said.append(f"  {words(group.changed_components[0])} changed with it.")
    said += [f"  {_event(event, marks)}" for event in group.events[:_NAMED_EVENTS]]
    if rest := len(group.events) - _NAMED_EVENTS:
        said += [f"  and {plural(rest, 'more event')}; --json has them all."] if rest > 0 else []
    return said


def _event(event: ChangeEvent, marks: Mapping[str, str]) -> str:
    case = f"{event.workload}{marks.get(event.series_id or '', '')} / {event.strategy}"
    if event.verdict is Verdict.MISSING:
        return event.reason
    if event.p_value is None:
        return f"{case}: {METRICS[event.metric].word}: {event.reason}"
    return f"{case}: {METRICS[event.metric].word} {percent(event.change, signed=True)}"


def _stands_worse(groups: Sequence[EventGroup]) -> bool:
    """By series and metric the last event decides; the groups come oldest first."""
    last: dict[tuple[str | None, str], Verdict] = {}
    for group in groups:
        last |= {(event.series_id, event.metric.value): event.verdict for event in group.events}
    return any(verdict in (Verdict.REGRESSED, Verdict.MISSING) for verdict in last.values())


def _document(
    trials: DataFrame, groups: Sequence[EventGroup], summary: str, policy: Policy
) -> dict[str, Any]:
    newest = trials.iloc[-1]
    return {
        "schema": SCHEMA,
        "machine": {"id": str(newest["machine_id"]), "name": str(newest["machine"])},
        "sentence": summary,
        "groups": [group.model_dump(mode="json") for group in groups],
        "policy": policy.to_json(),
    }
