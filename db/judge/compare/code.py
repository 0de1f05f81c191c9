"""Whether one's own code differs between the sides of a comparison, and what it is called."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from pandas import DataFrame

from compilewatch.db.judge.compare.sides import CODE
from compilewatch.db.judge.results import BuildSide
from compilewatch.db.metrics.groups import Ints
from compilewatch.db.records.identity import SHORT_COMMIT
from compilewatch.db.records.ids import identity

_COLUMNS = (CODE, "code_hash")


@dataclass
class _Side:
    """What the trials of one case say on one side, without what they do not know."""

    names: set[str] = field(default_factory=set)
    hashes: set[str] = field(default_factory=set)


def same_code(trials: DataFrame, case: Ints, cases: int) -> list[bool | None]:
    """By case: whether the same code of one's own was measured on both sides; None where no side names any.

    `trials` with column `side`, `case` the number of the case of each. Code is the same where commit and
    hash of the imported sources are; a failed trial has no hash, and then the commit tells.
    """
    sides = _sides(trials, case)
    return [_same(*sides[number]) if number in sides else None for number in range(cases)]


def _same(base: _Side, head: _Side) -> bool:
    hashed = base.hashes == head.hashes or not (base.hashes and head.hashes)
    return base.names == head.names and hashed


def _sides(trials: DataFrame, case: Ints) -> dict[int, tuple[_Side, _Side]]:
    if not set(_COLUMNS) <= set(trials.columns) or trials[CODE].isna().all():
        return {}
    sides: dict[int, tuple[_Side, _Side]] = defaultdict(lambda: (_Side(), _Side()))
    known = np.flatnonzero(trials[CODE].notna().to_numpy())
    columns = (trials[name].array.take(known).tolist() for name in (*_COLUMNS, "side"))
    for number, name, source_hash, side in zip(case[known].tolist(), *columns, strict=True):
        of_side = sides[number][side]
        of_side.names.add(name)
        if not pd.isna(source_hash):
            of_side.hashes.add(source_hash)
    return dict(sides)


def with_hashes(
    sides: tuple[BuildSide, BuildSide], trials: DataFrame, case: Ints
) -> tuple[BuildSide, BuildSide]:
    """`sides`, told apart by what was imported where the same commit was measured with other sources."""
    if sides[0].components.get(CODE) != sides[1].components.get(CODE):
        return sides
    differing = [pair for pair in _sides(trials, case).values() if not _same(*pair)]
    if not differing:
        return sides
    base, head = (
        side.model_copy(
            update={"components": side.components | {CODE: _hashed(side, [pair[i] for pair in differing])}}
        )
        for i, side in enumerate(sides)
    )
    return base, head


def _hashed(side: BuildSide, cases: list[_Side]) -> str:
    hashes = sorted(set().union(*(each.hashes for each in cases)))
    shown = hashes[0] if len(hashes) == 1 else identity({"sources": hashes})
    return f"{side.components[CODE]}+{shown[:SHORT_COMMIT]}"
