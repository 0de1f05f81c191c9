"""What somebody wrote at a day or at a build, as marks on the axis of a trend."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import altair as alt
import pandas as pd

from compilewatch.dashboard.charts import style
from compilewatch.db.metrics.groups import row_dicts
from compilewatch.db.records.people import Annotation

_COLUMNS = ["at", "build", "text", "who", "url"]
_MARK_PX2 = 110


def frame(
    annotations: Sequence[Annotation], points: pd.DataFrame, rows: pd.DataFrame, names: Mapping[str, str]
) -> pd.DataFrame:
    """One row for each annotation that falls on what is drawn: `at`, `build`, `text`, `who`, `url`.

    One about a build stands where that build was first measured here. `points` in the order of
    `trend_rows.in_order`, `rows` what is drawn of them, `names` of builds by id.
    """
    drawn = points.loc[rows.index]
    moments = drawn.groupby("build_id")["last_started_at"].min().dt.tz_localize(None)
    begins, ends = rows["at"].min(), rows["at"].max()
    found: list[dict[str, Any]] = []
    for each in annotations:
        if each.happened_at is None:
            at = moments.get(each.build_id)
        else:
            moment = pd.Timestamp(each.happened_at).tz_localize(None)
            at = moment if begins <= moment <= ends else None
        if at is not None:
            build = names.get(each.build_id or "")
            found.append({"at": at, "build": build, "text": each.text, "who": written(each), "url": each.url})
    return pd.DataFrame(found, columns=_COLUMNS)


def _day(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d}"


def written(annotation: Annotation) -> str:
    """By whom, and when."""
    return f"{annotation.author}, {_day(annotation.written_at)}"


def sentence(annotation: Annotation, names: Mapping[str, str]) -> str:
    """When or of which build, of which workload alone, what and by whom, with its link."""
    about = names.get(annotation.build_id or "") or (
        _day(annotation.happened_at) if annotation.happened_at else "a build"
    )
    about = f"{about}, {annotation.workload}" if annotation.workload else about
    link = f" {annotation.url}" if annotation.url else ""
    return f"{about}: {annotation.text} ({annotation.author}){link}"


def sentences(rows: pd.DataFrame) -> list[str]:
    """Those of `frame` below a chart."""
    return [
        f"{row['build'] or _day(row['at'].to_pydatetime().replace(tzinfo=UTC))}: {row['text']} ({row['who']})"
        for row in row_dicts(rows)
    ]


def layers(axis: str) -> list[alt.Chart]:
    """A rule and a flag at each, over the frame `annotations`; a click opens its link."""
    base = style.inked("annotations")
    x = alt.X("build:O") if axis == "torch" else alt.X("at:T")
    tooltip = style.text_tooltip(text="Note", who="Written by")
    rules = base.mark_rule(strokeWidth=1.2, opacity=0.45).encode(
        x=x, tooltip=tooltip, stroke=style.ink_stroke()
    )
    flags = base.mark_point(shape="triangle-right", size=_MARK_PX2, filled=True, opacity=0.9).encode(
        x=x, y=alt.value(alt.ExprRef(expr="height - 7")), tooltip=tooltip, href="url:N", fill=style.ink_fill()
    )
    return [rules, flags]
