"""`compilewatch history` without a case: every change of a machine, series that moved together as one."""

from __future__ import annotations

import sys
from collections.abc import Mapping

from compilewatch.db.columns.metrics import METRICS
from compilewatch.db.engine.session import Database
from compilewatch.db.judge.history.machine import EventGroup
from compilewatch.db.judge.policy import Policy
from compilewatch.db.judge.results import ChangeEvent
from compilewatch.db.judge.words.sentences import confounded
from compilewatch.db.queries.filters import Filters
from compilewatch.db.records.marks import origin_mark_of
from compilewatch.db.records.versions import component_name
from compilewatch.db.records.vocabulary import Verdict
from compilewatch.db.units import moment, percent, plural
from compilewatch.db.verdicts.steps import machine_steps
from compilewatch.runner.cli.front import EXIT_CANNOT
from compilewatch.runner.cli.judge.judging import exit_code
from compilewatch.runner.cli.options import only
from compilewatch.runner.output.documents import print_document
from compilewatch.runner.output.tables import print_lines

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
    trials, newest = steps.trials, steps.newest_two(database)
    # What became of the cases, and the largest change or what latency did.
    said = () if newest is None else newest.sentences[:2]
    more = f" The newest run against the one before: {' '.join(said)}" if said else ""
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
