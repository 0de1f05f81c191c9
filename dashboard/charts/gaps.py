"""Where a history has no number: its lines end there, its version axis shows it, and a sentence names it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from compilewatch.db.columns.metrics import METRICS
from compilewatch.db.records.strategies import EAGER, sort_key

# More than this in a row are told by the first and the last; of more groups the rest is counted.
_NAMED_EACH = 2
_MOST_GROUPS = 4


def stretches(points: pd.DataFrame, known: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Of each point how many points of its strategy before it have no number: a line connects equal ones.

    `points` of one workload in the order of the axis; `known` says which of them have a number.
    """
    missing = pd.Series(~known, dtype=np.int64).groupby(points["strategy"].to_numpy())
    return missing.cumsum().to_numpy()


def since_first(
    points: pd.DataFrame, rows: pd.DataFrame, metric: str, *, axis: str, names: Mapping[str, str]
) -> tuple[tuple[str, ...], str]:
    """Of `points` of one workload from the first of the chart's `rows` on the names of the builds, oldest
    version first, and in a sentence those without a number; at least one is drawn.

    `names` by build id, oldest first. On an axis of time nothing is said of what has no number.
    """
    since = points.loc[rows.index[0] :]
    measured = set(since["build_id"])
    builds = tuple(name for key, name in names.items() if key in measured)
    return builds, sentence(since, metric, names) if axis == "torch" else ""


def sentence(points: pd.DataFrame, metric: str, names: Mapping[str, str]) -> str:
    """ "No number: default never with torch 2.8.0 to torch 2.12.1." Empty where every point has one.

    `points` of one workload; `names` by build id, oldest first.
    """
    compiled = points[points["strategy"] != EAGER.name]
    missing = compiled[compiled[METRICS[metric].column].isna()]
    if missing.empty:
        return ""
    words = missing[metric] if metric == "break_even" else ["unknown"] * len(missing)
    builds_of: dict[tuple[str, str], set[str]] = {}
    for strategy, word, build in zip(missing["strategy"], words, missing["build_id"], strict=True):
        builds_of.setdefault((strategy, str(word)), set()).add(build)
    measured = set(points["build_id"])
    order = [key for key in names if key in measured]
    several = compiled["strategy"].nunique() > 1
    parts = [
        f"{f'{strategy} ' if several else ''}{word} with {_listed(order, builds, names)}"
        for (strategy, word), builds in sorted(builds_of.items(), key=lambda item: sort_key(item[0][0]))
    ]
    return f"No number: {'; '.join(parts)}."


def _listed(order: Sequence[str], wanted: set[str], names: Mapping[str, str]) -> str:
    """The `wanted` of the builds in `order`, neighbours together."""
    groups = [list(keys) for inside, keys in groupby(order, wanted.__contains__) if inside]
    texts = [
        f"{names[keys[0]]} to {names[keys[-1]]}"
        if len(keys) > _NAMED_EACH
        else ", ".join(names[key] for key in keys)
        for keys in groups[-_MOST_GROUPS:]
    ]
    left = sum(map(len, groups[:-_MOST_GROUPS]))
    return ", ".join(texts) + (f" and {left} older" if left else "")
