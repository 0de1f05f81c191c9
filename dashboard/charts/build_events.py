"""Where the build changed from one point of a history to the next."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pandas as pd
from packaging.version import InvalidVersion, Version

from dashboard import shaping

MOST_EVENTS = 30
"""More rules than that hide what they stand beside."""
# What the label of a build change takes of the width of the time axis.
_LABEL_SHARE = 0.13
_COLUMNS = ["at", "label", "detail", "cause"]


def events(points: pd.DataFrame, rows: pd.DataFrame) -> pd.DataFrame:
    """Where the build changed from one point to the next: `at`, `label`, `detail`, `cause`.

    `points` in the order of `trend_rows.in_order`, `rows` what `trend_rows.frame` draws of them. `cause` is
    `confounded` where several components changed at once that could each be the reason. Of more than
    `MOST_EVENTS` those from one nightly build to the next of a release are left out, then the oldest.
    """
    since = rows["at"].min()
    needed = ["run_id", "build_id", "last_started_at", *shaping.BUILD_COMPONENTS]
    narrow = points[[name for name in needed if name in points]]
    runs = shaping.row_dicts(narrow.drop_duplicates(["run_id", "build_id"]))
    found: list[dict[str, Any]] = []
    nightly: list[bool] = []
    for before, after in pairwise(runs):
        at = after["last_started_at"].tz_localize(None)
        if before["build_id"] == after["build_id"] or at < since:
            continue
        changes = shaping.build_changes(before, after)
        several = shaping.confounded(changes)
        label = f"{changes[0].component} {changes[0].after}" if changes else "settings"
        found.append(
            {
                "at": at,
                "label": f"{label} + {len(changes) - 1} more" if several else label,
                "detail": "; ".join(str(change) for change in changes) or "settings or packages",
                "cause": "confounded" if several else "one cause",
            }
        )
        nightly.append(_is_next_nightly(changes))
    if len(found) > MOST_EVENTS:
        found = [event for event, is_next in zip(found, nightly, strict=True) if not is_next][-MOST_EVENTS:]
    return _spaced(pd.DataFrame(found, columns=_COLUMNS), points)


def _is_next_nightly(changes: Sequence[shaping.Change]) -> bool:
    """Whether torch alone changed, with what it carries, and only by the day on which it was built."""
    torch = next((change for change in changes if change.component == "torch"), None)
    if torch is None or shaping.confounded(changes):
        return False
    try:
        before, after = Version(torch.before), Version(torch.after)
    except InvalidVersion:
        return False
    return before.is_devrelease and after.is_devrelease and before.release == after.release


def _spaced(changes: pd.DataFrame, points: pd.DataFrame) -> pd.DataFrame:
    """`changes` without the labels that would be written over each other; their rules and tooltips stay."""
    if changes.empty:
        return changes
    needed = (points["last_started_at"].max() - points["last_started_at"].min()) * _LABEL_SHARE
    shown: list[str] = []
    free_from = changes["at"].min()
    for change in shaping.row_dicts(changes):
        fits = change["at"] >= free_from
        shown.append(change["label"] if fits else "")
        if fits:
            free_from = change["at"] + needed
    return changes.assign(label=shown)
