"""How long a trial of each case takes: from what is stored of this machine, and from what ended meanwhile."""

from __future__ import annotations

import socket
import statistics
from collections import defaultdict
from collections.abc import Mapping

from pandas import DataFrame, Series

from compilewatch.db.engine.session import Database
from compilewatch.db.metrics.eligibility import without_cancelled
from compilewatch.db.queries.filters import Filters
from compilewatch.db.queries.trials import latest_trials_frame
from compilewatch.runner.plan.plan import Plan

Case = tuple[str, str]
"""Workload and strategy by name."""
# A first guess before anything was measured anywhere; replaced by the first finished trial.
_UNKNOWN_TRIAL_S = 15.0


def stored_durations_s(database: Database, plan: Plan) -> dict[Case, float]:
    """Median seconds that a trial of each case took the last time on a device of this host.

    A case that only other machines measured stands with their median, one that nobody measured is left out.
    """
    names = Filters(workloads=tuple({spec.workload.name for spec in plan.trials}))
    latest = without_cancelled(latest_trials_frame(database, names).dropna(subset=["ended_at"]))
    if latest.empty:
        return {}
    kinds = {spec.device.partition(":")[0] for spec in plan.trials}
    here = (latest["machine"] == socket.gethostname()) & latest["device"].isin(kinds)
    seconds = (latest["ended_at"] - latest["started_at"]).dt.total_seconds()
    return _medians(latest, seconds) | _medians(latest[here], seconds[here])


def _medians(trials: DataFrame, seconds: Series[float]) -> dict[Case, float]:
    seconds_of: dict[Case, list[float]] = defaultdict(list)
    for workload, strategy, each in zip(trials["workload"], trials["strategy"], seconds, strict=True):
        seconds_of[workload, strategy].append(each)
    return {case: statistics.median(values) for case, values in seconds_of.items()}


class Durations:
    """Expected seconds of a trial: the median of its case meanwhile, else in the history at today's pace.

    Else that of its workload, since models differ more than strategies do, else that of its strategy. The
    first trial of all reads torch from the disk; it counts for its case only until there is another.
    """

    def __init__(self, history_s: Mapping[Case, float]) -> None:
        self._history_s = dict(history_s)
        self._by_case: dict[Case, list[float]] = defaultdict(list)
        self._first: Case | None = None

    def note(self, case: Case, seconds: float) -> None:
        """A trial of `case` ended after `seconds`."""
        if self._first is None:
            self._first = case
        self._by_case[case].append(seconds)

    def _measured_s(self) -> dict[Case, float]:
        # A copy: one thread measures while another shows.
        measured = {case: list(values) for case, values in list(self._by_case.items()) if values}
        if self._first in measured and len(measured[self._first]) > 1:
            del measured[self._first][0]
        return {case: statistics.median(values) for case, values in measured.items()}

    def expected_s(self, case: Case) -> float:
        """Of one trial of `case`."""
        measured = self._measured_s()
        shared = [measured[each] / self._history_s[each] for each in measured if self._history_s.get(each)]
        pace = statistics.median(shared) if shared else 1.0
        known = {each: pace * seconds for each, seconds in self._history_s.items()} | measured
        if case in known:
            return known[case]
        for part in (0, 1):
            alike = [seconds for each, seconds in known.items() if each[part] == case[part]]
            if alike:
                return statistics.median(alike)
        return _UNKNOWN_TRIAL_S


def plan_s(database: Database, plan: Plan) -> float:
    """Expected seconds of all trials of `plan`, from what is stored."""
    durations = Durations(stored_durations_s(database, plan))
    return sum(durations.expected_s((each.workload.name, each.strategy.name)) for each in plan.trials)
