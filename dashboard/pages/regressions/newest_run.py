"""Where no regression was ever recorded: what the judge says now of the newest run."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import streamlit as st

from dashboard.links.links import Link, Page
from dashboard.pages.regressions import inbox
from dashboard.pages.upgrade import content as upgrade_rows
from dashboard.pages.upgrade import tables as upgrade_tables
from dashboard.read.data import filters_of, read_builds, read_comparison, read_trials, recent
from dashboard.read.snapshots import Snapshot, cached
from dashboard.render import elements, verdict_words
from dashboard.render.foreign_text import escaped
from dashboard.render.shell import View
from db.judge.compare.sides import VerdictError
from db.judge.results import Comparison
from db.judge.vocabulary import Verdict
from db.records.trial import SourceKind
from db.wording.marks import BOUND_TITLE


def finding_columns(confidence: float | None) -> dict[str, object]:
    """The columns of a verdict; `confidence` of its interval, None where it was recorded."""
    text = st.column_config.TextColumn
    return {
        "workload": text("Workload"),
        "strategy": "Strategy",
        "metric": "Figure",
        "base": text("Base", alignment="right", help=verdict_words.SIDES_HELP),
        "head": text("Head", alignment="right", help=verdict_words.SIDES_HELP),
        "change": text("Change", alignment="right"),
        "interval": text(
            verdict_words.interval_title(confidence),
            alignment="right",
            help=None if confidence else "At the confidence of the policy by which it was judged.",
        ),
        "moved": "Who moved",
        **BOUND_TITLE,
    }


@cached
def _newest_comparison(snapshot: Snapshot, link: Link) -> Comparison | None:
    """The newest measured run against the one before it of the same suite, of imported ones where nothing was
    measured; None where there is none before.
    """
    filters = filters_of(link)
    trials = read_trials(snapshot, recent(snapshot, filters))
    measured = trials[trials["source_kind"] == SourceKind.MEASURED]
    trials = trials if measured.empty else measured
    newest = trials.sort_values("started_at").tail(1)
    suite = trials["suite"].fillna("") == newest["suite"].fillna("").iloc[0]
    began = trials[suite].groupby("run_id")["started_at"].min().sort_values()
    if len(began) < 2:
        return None
    return read_comparison(snapshot, filters, str(began.index[-2]), str(began.index[-1]), "run")


def draw(view: View) -> None:
    """What the judge says now about the newest run of the machine, as nothing is recorded."""
    machine = view.link.machine or view.choices.newest_machine
    link = Link(page=Page.REGRESSIONS, machine=machine, task=view.link.task, workload=view.link.workload)
    if not read_builds(view.snapshot, filters_of(link)):
        elements.nothing_to_show("No trial fits these filters.", next_step="Widen them in the sidebar.")
        return
    elements.note(
        "No regression is recorded in this database. Shown is what the judge says now of the newest run on "
        f"{view.choices.machines[str(machine)]} against the one before it; it has no state to triage."
    )
    try:
        comparison = _newest_comparison(view.snapshot, link)
    except VerdictError as error:
        elements.nothing_to_show(error.message, next_step=error.next_step)
        return
    if comparison is None:
        elements.nothing_to_show(
            "There is no run before the newest one.", next_step="Measure the same suite once more."
        )
        return
    _judged_now(comparison, view.link.strategy)


def _judged_now(comparison: Comparison, wanted: Sequence[str]) -> None:
    rows = [
        inbox.finding_row(row)
        for row in comparison.rows
        if row.verdict is Verdict.REGRESSED and (not wanted or row.strategy in wanted)
    ]
    elements.note(" ".join(comparison.sentences))
    if not rows:
        found = verdict_words.no_regression(comparison, wanted)
        show, icon = (st.success, "check_circle") if found.shown else (st.info, "help")
        show(escaped(found.sentence), icon=f":material/{icon}:")
        cases = [case for case in comparison.left_out if not wanted or case.strategy in wanted]
        upgrade_tables.left_out("Not compared", found.left_out, upgrade_rows.left_out_table(cases))
        return
    columns = {
        **finding_columns(comparison.policy.confidence),
        "q": st.column_config.TextColumn("q", alignment="right"),
        "reason": "Why",
    }
    elements.table(
        pd.DataFrame(rows),
        columns,
        key="regressions-now",
        alt="What regressed in the newest run against the one before it",
    )
