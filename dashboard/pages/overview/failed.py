"""What failed in the last run: with the text of the exception, of memory with its figures, and since when."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from compilewatch.dashboard.links.links import Link, Page
from compilewatch.dashboard.parts import parts
from compilewatch.dashboard.parts.parts import Leads, Part, TableColumn
from compilewatch.dashboard.read.data import (
    filters_of,
    read_last_run,
    read_points,
    read_trials,
    recent,
)
from compilewatch.db import units
from compilewatch.db.metrics.groups import row_dicts
from compilewatch.db.records.trial import FailureKind, Status

_MOST_ROWS, _LONGEST = 5, 160
_COLUMNS = {
    "model": replace(parts.WORKLOAD, title="Model", pinned=False),
    "strategy": TableColumn("Strategy"),
    "trials": TableColumn("Trials"),
    "why": TableColumn("Why", wide=True),
    "since": TableColumn("Since"),
    "log": TableColumn("Log", leads=Leads(Page.TRIAL, {"trial": "trial"})),
}
_CASE = ("workload_id", "strategy_id")
# As torch words what it asked for and what there was.
_ASKED = re.compile(r"[Tt]ried to allocate ([\d.]+ \w+)")
_TOTAL = re.compile(r"total capacity of ([\d.]+ \w+)")
_FREE = re.compile(r"([\d.]+ \w+) is free")


def failed(link: Link, last: pd.DataFrame) -> tuple[Part, ...]:
    """A row for each case of the `last` run with a failed trial, what is new first."""
    failing = row_dicts(last[last["failed_trials"] > 0])
    if not failing:
        return ()
    run = str(read_last_run(filters_of(link)))
    since = _since(link, failing, run)
    failing.sort(key=lambda case: (since[_ids(case)] != "new", -case["failed_trials"] / case["trials"]))
    shown = failing[:_MOST_ROWS]
    newest = _newest(link, run, shown)
    rows = [
        {
            "model": case["workload_label"],
            "workload": case["workload_label"],
            "strategy": case["strategy"],
            "trials": f"{units.count(case['failed_trials'])} of {units.count(case['trials'])}",
            "why": _why(newest[_ids(case)]),
            "since": since[_ids(case)],
            "log": "log",
            "trial": newest[_ids(case)]["trial_id"],
        }
        for case in shown
        if _ids(case) in newest
    ]
    more = len(failing) - len(shown)
    return parts.table(
        "overview-failed",
        "Cases of the last run that failed: model, strategy, trials, why and since when",
        pd.DataFrame(rows),
        _COLUMNS,
        title="Failed in the last run",
        note=f"{units.plural(more, 'more case')} of run {run} failed." if more else "",
        few=True,
    )


def _ids(case: Mapping[str, Any]) -> tuple[str, str]:
    return case["workload_id"], case["strategy_id"]


def _newest(link: Link, run: str, cases: Sequence[dict[str, Any]]) -> dict[tuple[str, str], dict[str, Any]]:
    """The last failed trial of each case in that run."""
    of_run = replace(
        filters_of(link),
        runs=(run,),
        statuses=(Status.FAILED,),
        workloads=tuple(sorted({case["workload"] for case in cases})),
    )
    trials = read_trials(of_run)[[*_CASE, "trial_id", "failure_kind", "failure_message"]]
    return {_ids(trial): trial for trial in row_dicts(trials)}


def _why(trial: Mapping[str, Any]) -> str:
    kind, message = str(trial["failure_kind"]), str(trial["failure_message"])
    if kind == FailureKind.OUT_OF_MEMORY and (figures := _memory(message)):
        return figures
    return message if len(message) <= _LONGEST else f"{message[: _LONGEST - 1]}…"


def _memory(message: str) -> str:
    """ "out of memory: asked for 20.00 GiB, 7.50 GiB of 79.11 GiB free", as far as the message says it."""
    found = (each.search(message) for each in (_ASKED, _FREE, _TOTAL))
    asked, free, total = (each[1] if each else "" for each in found)
    number, _, unit = asked.partition(" ")
    if unit == "bytes":
        # As its allocator on a CPU counts.
        asked = units.size(float(number))
    said = [f"asked for {asked}"] if asked else []
    said += [f"{free} of {total} free"] if free and total else []
    return f"out of memory: {', '.join(said)}" if said else ""


def _since(link: Link, failing: Sequence[dict[str, Any]], run: str) -> dict[tuple[str, str], str]:
    """Since when each case fails in every run that has it: "new" where it passed the run before, else the day
    of the first of them; of what no earlier run has, that.
    """
    names = tuple(sorted({case["workload"] for case in failing}))
    before = replace(filters_of(replace(link, build=None, build_run=())), workloads=names)
    points = read_points(recent(before), columns=("failed_trials", "run_id", "last_started_at"))
    runs: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for point in row_dicts(points[[*_CASE, "failed_trials", "run_id", "last_started_at"]]):
        runs.setdefault(_ids(point), []).append(point)
    since = {}
    for case in failing:
        mine = runs.get(_ids(case), [])
        places = [place for place, point in enumerate(mine) if point["run_id"] == run]
        first = places[0] if places else len(mine)
        while first > 0 and mine[first - 1]["failed_trials"]:
            first -= 1
        if places and first < places[0]:
            since[_ids(case)] = f"since {mine[first]['last_started_at']:%Y-%m-%d}"
        else:
            since[_ids(case)] = "new" if first else "its first run"
    return since
