"""Where the build changed from one point of a history to the next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import pandas as pd
from packaging.version import InvalidVersion, Version

from compilewatch.dashboard.charts import trend_rows
from compilewatch.dashboard.read import shaping
from compilewatch.db.judge.compare.sides import CODE, LIBRARIES
from compilewatch.db.metrics.groups import row_dicts

MOST_EVENTS = 30
"""More rules than that hide what they stand beside."""
# What the label of a build change takes of the width of the time axis.
_LABEL_SHARE = 0.17
_COLUMNS = ["at", "label", "detail", "cause"]


class _Step(NamedTuple):
    """What one build has other than the one before it."""

    label: str
    detail: str
    cause: str
    is_next_nightly: bool


def events(points: pd.DataFrame, rows: pd.DataFrame) -> pd.DataFrame:
    """Where the build or one's own code changed from one point to the next: `at`, `label`, `detail`, `cause`.

    `points` in the order of `trend_rows.in_order`, `rows` what `trend_rows.frame` draws of them. `cause` is
    `confounded` where several components changed at once that could each be the reason. Of more than
    `MOST_EVENTS` those from one commit of one's own to the next, and from one nightly build to the next of a
    release, are left out, then the oldest.
    """
    names = [name for name in (*shaping.BUILD_COMPONENTS, CODE, LIBRARIES) if name in points]
    first = points.loc[~points.duplicated(["run_id", "build_id"]), ["build_id", "last_started_at", *names]]
    moments = first["last_started_at"].dt.tz_localize(None)
    builds = row_dicts(first.assign(last_started_at=moments))
    begins = rows["at"].min()
    changes = [
        (after["last_started_at"], _step(before, after))
        for before, after in pairwise(builds)
        if after["last_started_at"] >= begins
        and (before["build_id"] != after["build_id"] or _code_changed(before, after))
    ]
    if len(changes) > MOST_EVENTS:
        changes = [each for each in changes if not each[1].is_next_nightly][-MOST_EVENTS:]
    return _spaced(pd.DataFrame([(at, *step[:3]) for at, step in changes], columns=_COLUMNS), rows)


def _code_changed(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    return any(change.component == CODE for change in shaping.build_changes(before, after))


def _step(before: Mapping[str, Any], after: Mapping[str, Any]) -> _Step:
    changes = shaping.build_changes(before, after)
    several = shaping.confounded(changes)
    label = f"{changes[0].component} {changes[0].after}" if changes else "settings"
    return _Step(
        f"{label} + {len(changes) - 1} more" if several else label,
        "; ".join(str(change) for change in changes) or "settings or packages",
        "confounded" if several else "one cause",
        _is_next_nightly(changes),
    )


def _is_next_nightly(changes: Sequence[shaping.Change]) -> bool:
    """Whether torch alone changed, with what it carries, and only by the day on which it was built; or one's
    own code alone.
    """
    if [change.component for change in changes] == [CODE]:
        return True
    torch = next((change for change in changes if change.component == "torch"), None)
    if torch is None or shaping.confounded(changes):
        return False
    try:
        before, after = Version(torch.before), Version(torch.after)
    except InvalidVersion:
        return False
    return before.is_devrelease and after.is_devrelease and before.release == after.release


def _spaced(changes: pd.DataFrame, rows: pd.DataFrame) -> pd.DataFrame:
    """`changes` without the labels that would be written over each other; their rules and tooltips stay."""
    if changes.empty:
        return changes
    shown = trend_rows.window(rows)
    needed = (shown.last - shown.first) * _LABEL_SHARE
    labels: list[str] = []
    free_from = changes["at"].min()
    for change in row_dicts(changes):
        fits = change["at"] >= free_from
        labels.append(change["label"] if fits else "")
        if fits:
            free_from = change["at"] + needed
    return changes.assign(label=labels)
