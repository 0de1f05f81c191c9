"""Trials that are added until they decide: when they are looked at, and the part of every level that a look
may spend.

Judged over and over at the whole level, trials of one code differ sooner or later. So each look has a part of
the level, and all parts together are the level: alpha spending (Lan & DeMets 1983, Biometrika 70, 659-663),
by the bound of Bonferroni, which holds whatever the noise and however the looks depend on each other. The
looks go on for ever, in steps of a third to a half, with parts that fall as 1 / k^2: the stitching of
confidence sequences (Howard et al. 2021, Ann. Statist. 49, 1055-1080, section 3.1), looked at where a step
ends. Nobody has to know how many trials there will be.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy

from compilewatch.db.metrics.groups import Floats, Ints

LOOKS = np.array([2**n * step for n in range(1, 16) for step in (2, 3)], dtype=np.int64)
"""Trials a side at which trials are looked at: 4, 6, 8, 12, 16 and so on."""


def share_of_level(trials: Ints) -> Floats:
    """The part of every level that a case with so many trials a side may spend.

    Look k has 3 / ((k + 2) (k + 3)), which is 1/4, 3/20, 1/10 and so on, together 1. Trials that end between
    two looks, as their time was over, have the part of the look that they do not come to.
    """
    return share_of_look(np.searchsorted(LOOKS, trials) + 1)


def share_of_look(look: Ints) -> Floats:
    """The part of a level that look 1, 2 and so on may spend; of all looks together 1."""
    share: Floats = 3.0 / ((look + 2.0) * (look + 3.0))
    return share


def standard_error(half_width: float, trials: int, confidence: float) -> float:
    """Of a log change between sides of so many trials, by the half width of its interval."""
    level = (1.0 - confidence) * share_of_level(np.array(trials))
    return half_width / float(_quantile(trials, level))


def visible_after(error: float, trials: int, later: int, level: float) -> float:
    """The log change that the last look up to `later` trials a side would show two-sided at `level`, where
    `trials` leave the standard error `error`.
    """
    look = int(LOOKS[max(0, int(np.searchsorted(LOOKS, later, side="right")) - 1)])
    quantile = float(_quantile(look, level * share_of_level(np.array(look))))
    return quantile * error * math.sqrt(trials / look)


def trials_to_equal(error: float, trials: int, margin: float, level: float) -> int | None:
    """Trials a side after which two sides that do not differ are shown to be within the log change `margin`,
    each of the two tests at `level`, where `trials` leave the standard error `error`; None beyond all looks.
    """
    looks = LOOKS[trials < LOOKS]
    bound = _quantile(looks, 2.0 * level * share_of_level(looks)) * error * np.sqrt(trials / looks)
    enough = looks[bound <= margin]
    return int(enough[0]) if len(enough) else None


def _quantile(trials: Ints | int, level: Floats | float) -> Any:
    """Of Student's t between two sides of so many trials each: two-sided at `level`."""
    return scipy.special.stdtrit(2.0 * np.asarray(trials) - 2.0, 1.0 - np.asarray(level) / 2.0)
