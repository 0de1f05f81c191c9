"""Wild trials: a step time that stands alone, far from those of all its siblings, is set aside.

Siblings are the trials of one case in one run, timed by one method. A time is wild where it is off the
nearest sibling's by more than `FACTOR`, as no class of device is known to differ from process to process, and
by more than `TIMES_APART` times what the siblings differ among themselves. So of two modes none is wild once
each has two trials, and nothing is below three trials.
"""

from __future__ import annotations

import math

import numpy as np
from pandas import DataFrame

from compilewatch.db.metrics.groups import Bools, Floats, Groups

FACTOR = 2.0
"""How far apart fresh processes of one code are: of 140 JMH benchmarks (icpe-data-challenge-jmh) 0.01 % of
threes have one alone by 2, and 0.7 % by 1.5, which are modes: without them a mean is farther from the truth.
Host-bound steps of a GPU vary by 8 to 31 %.
"""
TIMES_APART = 3.0
WILD = "wild: its step time is far from all others of the case and run, so it counts in no time"
"""What is said of a wild trial."""
FEWEST_SIBLINGS = 2
_SIBLINGS = ["run_id", "build_id", "machine_id", "workload_id", "strategy_id"]


def wild_mask(trials: DataFrame, counted: Bools) -> Bools:
    """One flag per trial whose step time, its own or that of eager beside it, is wild. Those not `counted`
    are neither wild nor anybody's siblings.
    """
    if not counted.any():
        return np.zeros(len(trials), dtype=np.bool_)
    siblings = Groups.by(trials, [*_SIBLINGS, *({"timing_method"} & set(trials.columns))])
    wild = np.zeros(len(trials), dtype=np.bool_)
    for name in ("latency_ns", "control_latency_ns"):
        times = trials[name].to_numpy(dtype=np.float64, na_value=np.nan)
        with np.errstate(invalid="ignore", divide="ignore"):
            x = np.where(counted & (times > 0), np.log(times), np.nan)
        wild |= alone(siblings, x)
    return wild


def alone(groups: Groups, x: Floats, factor: float = FACTOR) -> Bools:
    """One flag per log value that is wild in its group."""
    present = groups.present(x)
    last = present.n - 1
    enough = present.n > FEWEST_SIBLINGS
    low, high = (present.pick(np.where(enough, rank, 0)) for rank in (np.zeros_like(last), last))
    above, below = (present.pick(np.where(enough, rank, 0)) for rank in (np.ones_like(last), last - 1))
    far = np.zeros(len(x), dtype=np.bool_)
    for end, nearest, others in ((low, above, high - above), (high, below, below - low)):
        distance = np.abs(end - nearest)
        wild = enough & (distance > math.log(factor)) & (distance > TIMES_APART * others)
        far |= wild[groups.codes] & (x == end[groups.codes])
    return far
