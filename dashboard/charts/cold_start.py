"""Process start to first result: a row for each model or strategy, with its cold start above its warm one."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import altair as alt
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from compilewatch.dashboard.charts import style
from compilewatch.dashboard.read.shaping import ColdStarts, labels_of
from compilewatch.dashboard.text import theme
from compilewatch.db import units
from compilewatch.db.metrics.groups import Groups, row_dicts
from compilewatch.db.queries.case_parts import PHASES as MEASURED
from compilewatch.db.queries.case_parts import UNATTRIBUTED
from compilewatch.db.records.trial import CacheState, PhasesNs

UNTOLD = "unattributed"
# Colour, and the text on it that can be read.
GROUPS = {
    "import": (theme.GREY, "black"),
    "trace": (theme.SKY, "black"),
    "lower": (theme.BLUE, "white"),
    "kernels": (theme.ORANGE, "black"),
    "first run": (theme.GREEN, "black"),
    UNTOLD: ("#DAD7D2", "black"),
}
"""In the order in which a process goes through them; the last is what no phase tells."""

# Phases of `db.records.trial.ColdStart`, in the order in which a process goes through them.
_PHASES = {
    "interpreter": ("interpreter", "import"),
    "import_torch": ("import torch", "import"),
    "harness": ("benchmark harness", "import"),
    "import_libraries": ("import libraries", "import"),
    "import_compile_stack": ("import compile stack", "import"),
    "build_model": ("build model", "import"),
    "eager_first": ("eager first call", "first run"),
    "dynamo": ("dynamo", "trace"),
    "aot_autograd": ("AOTAutograd", "trace"),
    "inductor": ("inductor", "lower"),
    "kernel_compile": ("kernel compile", "kernels"),
    "isa_probe": ("ISA probe", "kernels"),
    "autotune": ("autotune", "kernels"),
    "backward": ("backward", "lower"),
    "cudagraph_capture": ("CUDA-graph capture", "first run"),
    "first_call": ("first call", "first run"),
    "other": ("other", "first run"),
    "unattributed": (UNTOLD, UNTOLD),
}
PHASES = {phase: word for phase, (word, _) in _PHASES.items()}
GROUP_OF = dict(_PHASES.values())
"""By the word of a phase."""


MOST_ROWS = 24
"""More of them are no chart that anybody reads, and take a browser seconds."""
# A row has a line for its name and one for each way to start; so much of the height takes the rest.
_LINE_PX, _BETWEEN_PX, _AXIS_PX, _LEGEND_LINE_PX = 17, 9, 60, 21
# Right of the bars, for their totals.
_TOTAL_PX, _LETTER_PX = 92, 6.7
_NAME = "name"
"""The line of a row that has its name."""
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


def seconds_text(ns: float | None) -> str:
    """A time in the unit of the chart's axis: "104 s"."""
    return units.MISSING if pd.isna(ns) else f"{units.significant(float(ns) / 1e9)} s"


def base_of(strategy: str, cache: str) -> str:
    """The strategy whatever its cache held: "default" of "default+warm"."""
    return strategy.replace(f"+{cache}", "")


def frame_of(cases: pd.DataFrame, starts: ColdStarts) -> pd.DataFrame:
    """`frame` of the strategies and workloads of `cases` alone."""
    chosen = starts.trials["strategy_id"].isin(set(cases["strategy_id"])).to_numpy(dtype=np.bool_)
    return frame(ColdStarts(starts.trials[chosen], starts.phase_ns[chosen]), labels_of(cases))


class Drawn(NamedTuple):
    """What is drawn: the segments of all bars, the end of each bar, the rows from top to bottom with their
    names, the ways to start that they have, and what to say of rows that are left out.
    """

    segments: pd.DataFrame
    ends: pd.DataFrame
    names: pd.DataFrame
    starts: tuple[str, ...]
    left_out: str

    @property
    def rows(self) -> tuple[str, ...]:
        """Their keys."""
        return tuple(self.names["row"])

    @property
    def groups(self) -> tuple[str, ...]:
        """Of phases, those that a bar has."""
        present = set(self.segments["group"])
        return tuple(group for group in GROUPS if group in present)


def drawn(
    rows: pd.DataFrame,
    known: Mapping[tuple[str, str, str], float],
    named: Mapping[tuple[str, str], str],
    most: int = MOST_ROWS,
) -> Drawn:
    """A row for each workload and strategy in `named`, by what it is called, of more than `most` those that
    take longest cold; the longest first.

    `rows` as `frame` has them, `known` times to first result in ns by workload, strategy and cache state,
    which stand at the end of a bar, else the sum of its phases.
    """
    bars: dict[str, dict[str, pd.DataFrame]] = {}
    for key, phases in rows.groupby(_CASE, sort=False):
        workload, strategy, cache = map(str, key)
        row = named.get((workload, base_of(strategy, cache)))
        if row is not None:
            # Eager has no cache to be filled.
            start = CacheState.COLD.value if cache == CacheState.NONE else cache
            bars.setdefault(row, {})[start] = phases
    longest = sorted(bars, key=lambda row: -_seconds(bars[row]))[:most]
    ways = [state.value for state in CacheState if any(state.value in bars[row] for row in longest)]
    segments = [
        segment
        for row in longest
        for way in ways
        if way in bars[row]
        for segment in _segments(row, way, bars[row][way])
    ]
    ends = [_end(row, way, bars[row][way], known) for row in longest for way in ways if way in bars[row]]
    more = f"The {most} slowest of {units.plural(len(bars), 'row')}." if len(bars) > most else ""
    return Drawn(
        pd.DataFrame(segments, columns=_SEGMENT),
        pd.DataFrame(ends, columns=_END),
        pd.DataFrame({"row": longest, "start": _NAME}),
        tuple(ways),
        more,
    )


_SEGMENT = [
    *("row", "start", "group", "place", "left", "right", "label", "short", "text_ink"),
    *("case", "seconds_text", "share_text", "phases_text", "trials_text"),
]
_END = ["row", "start", "seconds", "text", "workload", "strategy", "phase", "share"]


def _seconds(bars: Mapping[str, pd.DataFrame]) -> float:
    """Of the cold start, else of the first that is known."""
    start = CacheState.COLD.value if CacheState.COLD.value in bars else next(iter(bars))
    return float(bars[start]["seconds"].sum())


def _segments(row: str, start: str, phases: pd.DataFrame) -> list[dict[str, object]]:
    """The groups of phases of a bar, in order, the largest phase written in the one that it is of."""
    known = row_dicts(phases)
    largest = max(known, key=lambda phase: phase["seconds"])
    found, left = [], 0.0
    for group in GROUPS:
        mine = sorted(
            (phase for phase in known if GROUP_OF[phase["phase"]] == group), key=lambda phase: phase["place"]
        )
        if not mine:
            continue
        seconds = sum(phase["seconds"] for phase in mine)
        share = units.percent(largest["share"]) if largest in mine else ""
        found.append(
            {
                "row": row,
                "start": start,
                "group": group,
                "left": left,
                "right": left + seconds,
                "label": f"{largest['phase']} {share}" if share else "",
                "short": str(largest["phase"]) if share else "",
                "text_ink": GROUPS[group][1],
                "case": f"{mine[0]['workload']} · {mine[0]['strategy']}",
                "seconds_text": seconds_text(seconds * 1e9),
                "share_text": units.percent(sum(phase["share"] for phase in mine)),
                "phases_text": ", ".join(
                    f"{phase['phase']} {seconds_text(phase['mean_ns'])}" for phase in mine
                ),
                "trials_text": units.count(max(phase["trials"] for phase in mine)),
            }
        )
        left += seconds
    return found


def _phase_text(phase: Mapping[str, Any]) -> str:
    return f"{phase['phase']} {seconds_text(phase['mean_ns'])}"


def _end(
    row: str, start: str, phases: pd.DataFrame, known: Mapping[tuple[str, str, str], float]
) -> dict[str, object]:
    """Where a bar ends, the text that stands there, and its largest phase; that of no first call has none."""
    first = row_dicts(phases)[0]
    key = first["workload"], first["strategy"], first["cache"]
    seconds = float(phases["seconds"].sum())
    way = "" if first["cache"] == CacheState.NONE else f" {start}"
    largest = row_dicts(phases.sort_values("seconds"))[-1]
    has_phases = bool(set(phases["phase"]) & _OF_FIRST_CALL)
    return {
        "row": row,
        "start": start,
        "seconds": seconds,
        "text": f"{seconds_text(known.get(key, seconds * 1e9))}{way}",
        "workload": first["workload"],
        "strategy": first["strategy"],
        "phase": largest["phase"] if has_phases else None,
        "share": largest["share"],
    }


def finding(found: Drawn) -> str:
    """The slowest start and the phase that takes most of it, of those whose first call is known.

    `found` has the slowest row first.
    """
    if found.ends.empty:
        return "No cold start is known"
    split = found.ends[found.ends["phase"].notna()]
    if split.empty:
        return "No time to first result is known: no case tells its first call"
    slowest = row_dicts(split)[0]
    share = units.percent(slowest["share"])
    needs = f"{slowest['workload']} · {slowest['strategy']} needs {slowest['text']} to its first result"
    return f"{needs}; {slowest['phase']} is {share} of it"


@lru_cache(maxsize=64)
def spec(rows: tuple[str, ...], starts: tuple[str, ...], groups: tuple[str, ...], end: float) -> style.Spec:
    """Bars over the frame `main` (segments), names of rows (`names`) and totals (`ends`); the axis ends at
    `end` seconds.

    Names above the bars leave these the whole width, which a phone needs.
    """
    row_px = _LINE_PX * (1 + len(starts)) + _BETWEEN_PX
    height = row_px * len(rows) + _AXIS_PX + _LEGEND_LINE_PX * math.ceil(len(groups) / 2)
    between = _BETWEEN_PX / row_px
    bands = alt.Scale(domain=list(rows), paddingInner=between, paddingOuter=between / 2)
    y = alt.Y("row:N", sort=list(rows), axis=None, scale=bands)
    lines = alt.YOffset("start:N", scale=alt.Scale(domain=[_NAME, *starts], paddingInner=0.12))
    across = alt.ExprRef(expr=f"width - {_TOTAL_PX}")
    seconds = alt.Scale(domain=[0, end], nice=False, range=[0, across])
    x = alt.X(
        "left:Q",
        title="Time since process start (s)",
        scale=seconds,
        axis=alt.Axis(tickCount=6, grid=True, titleAnchor="start"),
    )
    layers = [_bars(x, y, lines, groups), *_labels(seconds, y, lines, end), *_texts(seconds, y, lines)]
    return style.spec_of(alt.layer(*layers).properties(height=height))


def _bars(x: alt.X, y: alt.Y, lines: alt.YOffset, groups: tuple[str, ...]) -> alt.Chart:
    bars: alt.Chart = (
        alt.Chart(style.data("main"))
        .mark_bar(stroke=None)
        .encode(
            x=x,
            x2="right",
            y=y,
            yOffset=lines,
            color=alt.Color(
                "group:N",
                title=None,
                scale=alt.Scale(domain=list(groups), range=[GROUPS[group][0] for group in groups]),
                legend=style.top_legend(6),
            ),
            tooltip=style.text_tooltip(
                case="Case",
                group="Phases",
                seconds_text="Mean",
                share_text="Share of the bar",
                phases_text="Of it",
                trials_text="Trials (n)",
            ),
        )
    )
    return bars


def _labels(seconds: alt.Scale, y: alt.Y, lines: alt.YOffset, end: float) -> list[alt.Chart]:
    """The largest phase in its bar, without its share where that has no room."""
    px = f"(datum.right - datum.left) / {end} * (width - {_TOTAL_PX})"
    fits = "{px} > {letter} * length(datum.{text}) + 6"
    wide, narrow = (fits.format(px=px, letter=_LETTER_PX, text=text) for text in ("label", "short"))
    return [
        alt.Chart(style.data("main"))
        .transform_filter(f"datum.label && datum.text_ink == '{ink}'")
        .transform_calculate(
            middle="(datum.left + datum.right) / 2",
            written=f"{wide} ? datum.label : {narrow} ? datum.short : ''",
        )
        .mark_text(align="center", baseline="middle", dy=1, fontSize=11, fill=ink, aria=False)
        .encode(x=alt.X("middle:Q", scale=seconds), y=y, yOffset=lines, text="written:N")
        for ink in ("black", "white")
    ]


def _texts(seconds: alt.Scale, y: alt.Y, lines: alt.YOffset) -> list[alt.Chart]:
    """The name above the bars and the total at the end of each."""
    names = style.inked("names").mark_text(align="left", baseline="middle", fontSize=12, aria=False)
    ends = style.inked("ends").mark_text(
        align="left", baseline="middle", dx=6, fontSize=12, fontWeight=600, aria=False
    )
    ink = style.ink_fill()
    return [
        names.encode(x=alt.value(2), y=y, yOffset=lines, text="row:N", fill=ink),
        ends.encode(x=alt.X("seconds:Q", scale=seconds), y=y, yOffset=lines, text="text:N", fill=ink),
    ]
