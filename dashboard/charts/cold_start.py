"""Process start to first result, one stacked bar per case, one colour per phase."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

import altair as alt
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from compilewatch.dashboard.charts import style
from compilewatch.dashboard.charts.phases import COLOURS, PHASES
from compilewatch.dashboard.read.shaping import ColdStarts, labels_of
from compilewatch.dashboard.text import theme
from compilewatch.db import units
from compilewatch.db.metrics.groups import Groups, row_dicts
from compilewatch.db.queries.cases.cold_start import PHASES as MEASURED
from compilewatch.db.queries.cases.cold_start import UNATTRIBUTED
from compilewatch.db.records.strategies import sort_key
from compilewatch.db.records.trial import PhasesNs

_BAR = 13
_ROW = 38
MOST_CASES = 24
"""More bars are no chart that anybody reads, and take a browser seconds."""
# What the axis takes of the height, and a line of the legend, which has two phases on a phone.
_AXIS_PX, _LEGEND_LINE_PX = 60, 21
_CASE = ["workload", "strategy", "cache"]

_PHASE_WORDS = [PHASES.get(phase, phase.replace("_", " ")) for phase in MEASURED]
# Of these a case has one only where its first call, or the whole time to its first result, is known.
_OF_FIRST_CALL = {PHASES[phase] for phase in (*PhasesNs.model_fields, "first_call", UNATTRIBUTED)}
_PLACES = np.array([[*PHASES, phase].index(phase) for phase in MEASURED])


def frame(starts: ColdStarts, labels: Mapping[str, str]) -> pd.DataFrame:
    """Seconds per case and phase, those that took no time left out: the mean over trials of all phases, in
    the shares that the phases have on average. `labels` name workloads by id.
    """
    cases, of_trial = _cases_of(starts.trials, labels)
    spent = starts.phase_ns.sum(axis=1).astype(float)
    known = (of_trial >= 0) & (spent > 0)
    of_case = Groups(of_trial[known], len(cases))
    total_ns, counted = of_case.mean(spent[known]), np.bincount(of_case.codes, minlength=len(cases))
    rows, phases = np.nonzero((starts.phase_ns > 0) & known[:, None])
    bars, first, of_row = np.unique(
        of_trial[rows] * len(MEASURED) + phases, return_index=True, return_inverse=True
    )
    # The oldest trial's first.
    order = np.argsort(first)
    of_bar, phase_of_bar = np.divmod(bars[order], len(MEASURED))
    trials = np.bincount(of_row, minlength=len(bars))[order]
    shares = np.bincount(of_row, starts.phase_ns[rows, phases] / spent[rows], len(bars))[order]
    share = shares / counted[of_bar]
    mean_ns = share * total_ns[of_bar]
    names = [cases[number] for number in of_bar]
    return pd.DataFrame(
        {
            "workload": [workload for workload, _, _ in names],
            "strategy": [strategy for _, strategy, _ in names],
            "cache": [cache for _, _, cache in names],
            "case": [_case_name(*name) for name in names],
            "phase": [_PHASE_WORDS[number] for number in phase_of_bar],
            "place": _PLACES[phase_of_bar],
            "seconds": mean_ns / 1e9,
            "share": share,
            "mean_ns": mean_ns,
            "trials": trials,
        }
    )


def _cases_of(
    trials: pd.DataFrame, labels: Mapping[str, str]
) -> tuple[list[tuple[str, str, str]], NDArray[np.int64]]:
    """Workload, strategy and cache state of each case, and per trial which it is of; -1 for one of none."""
    numbers: dict[tuple[str, str, str], int] = {}
    columns = (trials[name].tolist() for name in ("workload_id", "strategy", "cache"))
    of_trial = [
        numbers.setdefault((labels[workload_id], strategy, cache), len(numbers))
        if workload_id in labels
        else -1
        for workload_id, strategy, cache in zip(*columns, strict=True)
    ]
    return list(numbers), np.array(of_trial, dtype=np.int64)


def _case_name(workload: str, strategy: str, cache: str) -> str:
    """One row of the chart: the cache state is told where it is not the usual one."""
    state = "" if cache in {"cold", "none"} else f" ({cache} cache)"
    return f"{workload} · {strategy}{state}"


def totals(rows: pd.DataFrame, known: Mapping[tuple[str, str, str], float]) -> pd.DataFrame:
    """Per case where its bar ends and the text that stands there: the case's time to first result in `known`,
    in ns by workload, strategy and cache state, else the sum of its phases.
    """
    ends = rows.groupby(["case", *_CASE], sort=False)["seconds"].sum().reset_index()
    keys = zip(*(ends[name] for name in _CASE), strict=True)
    texts = [
        seconds_text(known.get(key, seconds * 1e9))
        for key, seconds in zip(keys, ends["seconds"].tolist(), strict=True)
    ]
    return ends[["case", "seconds"]].assign(text=texts)


def seconds_text(ns: float | None) -> str:
    """A time in the unit of the chart's axis: "104 s"."""
    return units.MISSING if pd.isna(ns) else f"{units.significant(float(ns) / 1e9)} s"


class Drawn(NamedTuple):
    """The bars that are drawn: their rows, the cases from top to bottom, the phases that they have, and what
    to say of cases that are left out.
    """

    rows: pd.DataFrame
    cases: tuple[str, ...]
    phases: tuple[str, ...]
    left_out: str


def bars(cases: pd.DataFrame, starts: ColdStarts) -> Drawn:
    """The bars of `cases`; `starts` are of other cases too."""
    return drawn(frame_of(cases, starts))


def frame_of(cases: pd.DataFrame, starts: ColdStarts) -> pd.DataFrame:
    """`frame` of the strategies and workloads of `cases` alone."""
    chosen = starts.trials["strategy_id"].isin(set(cases["strategy_id"])).to_numpy(dtype=np.bool_)
    return frame(ColdStarts(starts.trials[chosen], starts.phase_ns[chosen]), labels_of(cases))


def drawn(rows: pd.DataFrame) -> Drawn:
    """All cases of `frame`, strategies of a workload beside each other; of more than `MOST_CASES` those that
    take longest, longest first.
    """
    sums = rows.groupby("case", sort=False)["seconds"].sum()
    if len(sums) > MOST_CASES:
        cases = tuple(sums.nlargest(MOST_CASES).index)
        rows = rows[rows["case"].isin(cases)].reset_index(drop=True)
        left_out = f"The {MOST_CASES} slowest of {units.plural(len(sums), 'case')}."
    else:
        ordered = row_dicts(rows[["workload", "strategy", "case"]])
        ordered.sort(key=lambda row: (row["workload"], sort_key(row["strategy"]), row["case"]))
        cases, left_out = tuple(dict.fromkeys(row["case"] for row in ordered)), ""
    present = set(rows["phase"])
    phases = tuple(name for name in dict.fromkeys(PHASES.values()) if name in present)
    return Drawn(_with_texts(rows), cases, phases, left_out)


def _with_texts(rows: pd.DataFrame) -> pd.DataFrame:
    """`rows` with their figures as texts, which most cases need not be given: they are not drawn."""
    return rows.drop(columns=["share", "mean_ns", "trials"]).assign(
        share_text=[units.percent(share) for share in rows["share"].tolist()],
        seconds_text=[seconds_text(mean_ns) for mean_ns in rows["mean_ns"].tolist()],
        trials_text=[units.count(trials) for trials in rows["trials"].tolist()],
    )


@lru_cache(maxsize=64)
def spec(cases: tuple[str, ...], phases: tuple[str, ...]) -> style.Spec:
    """Bars over the frame `main`, with the case's name above each and its total at the end (`totals`).

    Names above the bars leave these the whole width, which a phone needs.
    """
    height = _ROW * len(cases) + _AXIS_PX + _LEGEND_LINE_PX * math.ceil(len(phases) / 2)
    rows = alt.Scale(paddingInner=0, paddingOuter=0.1)
    y = alt.Y("case:N", sort=list(cases), axis=None, scale=rows)
    return style.spec_of(alt.layer(_bars(y, phases), *_texts(y)).properties(height=height))


def _bars(y: alt.Y, phases: tuple[str, ...]) -> alt.Chart:
    colours = [COLOURS.get(phase, theme.GREY) for phase in phases]
    bars: alt.Chart = (
        alt.Chart(style.data("main"))
        .mark_bar(height=_BAR, yOffset=_BAR / 2 + 1, stroke=None)
        .encode(
            x=alt.X(
                "seconds:Q",
                stack="zero",
                title="Time since process start (s)",
                axis=alt.Axis(tickCount=6, grid=True),
            ),
            y=y,
            color=alt.Color(
                "phase:N",
                title=None,
                scale=alt.Scale(domain=list(phases), range=colours),
                legend=style.top_legend(7),
            ),
            order=alt.Order("place:Q"),
            tooltip=style.text_tooltip(
                case="Case",
                phase="Phase",
                seconds_text="Mean",
                share_text="Share of the bar",
                trials_text="Trials (n)",
            ),
        )
    )
    return bars


def _texts(y: alt.Y) -> list[alt.Chart]:
    """The name above each bar and the total at its end."""
    base = style.inked("totals")
    names = base.mark_text(align="left", baseline="bottom", dy=-1, fontSize=12, aria=False).encode(
        x=alt.value(2), y=y, text="case:N", fill=style.ink_fill()
    )
    middle = _BAR / 2 + 1
    ends = base.mark_text(
        align="left", baseline="middle", dx=6, dy=middle, fontSize=12, fontWeight=600, aria=False
    ).encode(
        x="seconds:Q",
        y=y,
        text="text:N",
        fill=style.ink_fill(),
    )
    return [names, ends]


def finding(rows: pd.DataFrame, ends: pd.DataFrame) -> str:
    """The slowest case and the phase that takes most of it, of those whose first call is known.

    `rows` as `drawn` has them, `ends` as `totals`.
    """
    if rows.empty:
        return "No cold start is known"
    phased = rows[rows["case"].isin(set(rows.loc[rows["phase"].isin(_OF_FIRST_CALL), "case"]))]
    if phased.empty:
        return "No time to first result is known: no case tells its first call"
    sums = phased.groupby("case")["seconds"].sum()
    slowest = str(sums.idxmax())
    inside = phased[phased["case"] == slowest]
    leading = inside.sort_values("seconds").iloc[-1]
    share = units.percent(leading["seconds"] / sums[slowest])
    needs = ends.loc[ends["case"] == slowest, "text"].iloc[0]
    return f"{slowest} needs {needs} to its first result; {leading['phase']} is {share} of it"
