"""Where the build changed from one point of a history to the next."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from packaging.version import InvalidVersion, Version

from dashboard.read import shaping
from db.metrics.groups import row_dicts

MOST_EVENTS = 30
"""More rules than that hide what they stand beside."""
# What the label of a build change takes of the width of the time axis.
_LABEL_SHARE = 0.13
_COLUMNS = ["at", "label", "detail", "cause"]


class _Step(NamedTuple):
    """What one build has other than the one before it."""

    label: str
    detail: str
    cause: str
    is_next_nightly: bool


def events(points: pd.DataFrame, rows: pd.DataFrame) -> pd.DataFrame:
    """Where the build changed from one point to the next: `at`, `label`, `detail`, `cause`.

    `points` in the order of `trend_rows.in_order`, `rows` what `trend_rows.frame` draws of them. `cause` is
    `confounded` where several components changed at once that could each be the reason. Of more than
    `MOST_EVENTS` those from one nightly build to the next of a release are left out, then the oldest.
    """
    first = np.flatnonzero(~points.duplicated(["run_id", "build_id"]).to_numpy())
    builds = points["build_id"].take(first).tolist()
    moments = points["last_started_at"].take(first).dt.tz_localize(None)
    before = (moments < rows["at"].min()).tolist()
    changed = [n for n in range(1, len(first)) if builds[n] != builds[n - 1] and not before[n]]
    names = tuple(name for name in shaping.BUILD_COMPONENTS if name in points)
    described = sorted({n - back for n in changed for back in (0, 1)})
    made_of = dict(zip(described, _rows(points, names, first[described]), strict=True))
    steps = [_step(names, made_of[n - 1], made_of[n]) for n in changed]
    changes = list(zip(moments.take(changed).tolist(), steps, strict=True))
    if len(changes) > MOST_EVENTS:
        changes = [each for each in changes if not each[1].is_next_nightly][-MOST_EVENTS:]
    return _spaced(pd.DataFrame([(at, *step[:3]) for at, step in changes], columns=_COLUMNS), points)


def _rows(frame: pd.DataFrame, names: Sequence[str], places: NDArray[np.intp]) -> list[tuple[object, ...]]:
    return list(zip(*(frame[name].array.take(places).tolist() for name in names), strict=True))


# A history has hundreds of builds, and with a new one the steps between the others are what they were.
@lru_cache(maxsize=1024)
def _step(names: tuple[str, ...], before: tuple[object, ...], after: tuple[object, ...]) -> _Step:
    old, new = (dict(zip(names, values, strict=True)) for values in (before, after))
    changes = shaping.build_changes(old, new)
    several = shaping.confounded(changes)
    label = f"{changes[0].component} {changes[0].after}" if changes else "settings"
    return _Step(
        f"{label} + {len(changes) - 1} more" if several else label,
        "; ".join(str(change) for change in changes) or "settings or packages",
        "confounded" if several else "one cause",
        _is_next_nightly(changes),
    )


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
    for change in row_dicts(changes):
        fits = change["at"] >= free_from
        shown.append(change["label"] if fits else "")
        if fits:
            free_from = change["at"] + needed
    return changes.assign(label=shown)
