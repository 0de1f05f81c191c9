"""The canary is no case: its workloads measure the machine and are left out where cases are listed."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase, translate

from pandas import DataFrame

CANARY_WORKLOADS = "canary*"


def without_canaries(trials: DataFrame, pattern: str = CANARY_WORKLOADS) -> DataFrame:
    """The rows of a frame with column `workload` whose workload does not fit the shell-style `pattern`."""
    if trials.empty:
        return trials
    fits = re.compile(translate(pattern))
    named = [name for name in trials["workload"].unique() if fits.match(str(name))]
    return trials[~trials["workload"].isin(named)] if named else trials


def is_canary(workload: str, pattern: str = CANARY_WORKLOADS) -> bool:
    """Whether a workload of this name fits the shell-style `pattern` and measures the machine."""
    return fnmatchcase(workload, pattern)
