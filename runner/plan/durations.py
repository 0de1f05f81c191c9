"""How long a trial of each case takes, from what is stored of this machine and ended meanwhile, and what fits
into the minutes that somebody has."""

from __future__ import annotations

import socket
import statistics
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping

from pandas import DataFrame, Series

from compilewatch.db.engine.session import Database
from compilewatch.db.errors import ConfigError
from compilewatch.db.metrics.eligibility import without_cancelled
from compilewatch.db.queries.selection import Filters
from compilewatch.db.queries.trials import latest_trials_frame
from compilewatch.db.records.trial import StrategyKind
from compilewatch.db.units import duration, plural
from compilewatch.runner.plan.plan import Plan
from compilewatch.runner.plan.trial_spec import Job, TrialSpec

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


_NAMED_CASES = 5


def by_value(plan: Plan, durations: Durations) -> Plan:
    """`plan` with its trials in the order of their value.

    A first trial of every workload with `default`, then with the other strategies as they were named and
    eager alone last, since every trial measures eager too; then the repeats alike. Of equal ones the
    shorter goes first. Builds that take turns stay side by side.
    """
    strategies = dict.fromkeys(spec.strategy.name for spec in plan.trials)
    named = {strategy: place for place, strategy in enumerate(strategies)}

    def value(spec: TrialSpec) -> tuple[int, int, int, float, str]:
        strategy = spec.strategy
        tier = 0 if strategy.name == "default" else 2 if strategy.kind is StrategyKind.EAGER else 1
        expected_s = durations.expected_s((spec.workload.name, strategy.name))
        return spec.round, tier, named[strategy.name], expected_s, spec.workload.name

    return plan.model_copy(update={"trials": tuple(sorted(plan.trials, key=value))})


def require_fit(plan: Plan, durations: Durations, seconds: float, *, together: int = 1) -> None:
    """Raise ConfigError where not even the shortest trial of `plan` is expected to end within `seconds`, with
    those of the other sides where these are measured `together`.
    """
    shortest_s = together * min(
        durations.expected_s((spec.workload.name, spec.strategy.name)) for spec in plan.trials
    )
    if shortest_s > seconds:
        sides = " of all sides" if together > 1 else ""
        raise ConfigError(
            f"No trial{sides} fits into {duration(seconds * 1e9)}: the shortest takes about "
            f"{duration(round(shortest_s) * 1e9)}.",
            "Give more minutes, or name other workloads.",
        )


class TimeBudget:
    """The seconds a run has, from now on. What is admitted is measured to its end, however long it takes.

    The control series of the machine is always measured; what it took before the trials is put by for the
    one after them.
    """

    def __init__(
        self,
        seconds: float,
        durations: Durations,
        *,
        canaries: bool,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._monotonic = monotonic
        self._began = monotonic()
        self._seconds = seconds
        self._durations = durations
        self._canaries = canaries
        self._reserved_s: float | None = None
        self.unmeasured: list[TrialSpec] = []
        """What was not admitted."""

    def remaining_s(self) -> float:
        """At least 0."""
        return max(0.0, self._seconds - (self._monotonic() - self._began))

    def admits(self, job: Job, *, together: int = 1) -> bool:
        """Whether `job`, which is next, is expected to end in time, and so many like it with it."""
        if job.is_canaries:
            return True
        if self._reserved_s is None:
            self._reserved_s = self._monotonic() - self._began if self._canaries else 0.0
        (spec,) = job.specs
        expected_s = together * self._durations.expected_s((spec.workload.name, spec.strategy.name))
        fits = expected_s + self._reserved_s <= self.remaining_s()
        if not fits:
            self.unmeasured.append(spec)
        return fits

    def unmeasured_text(self) -> str | None:
        """What was left out, and about how long it would take; None for nothing."""
        if not self.unmeasured:
            return None
        cases = Counter((spec.workload.name, spec.strategy.name) for spec in self.unmeasured)
        seconds = sum(self._durations.expected_s(case) * count for case, count in cases.items())
        named = [f"{workload} / {strategy}" for workload, strategy in list(cases)[:_NAMED_CASES]]
        more = f" and {plural(len(cases) - len(named), 'other case')}" if len(cases) > len(named) else ""
        trials = f"{plural(len(self.unmeasured), 'trial')} of {plural(len(cases), 'case')}"
        return f"{trials} did not fit, about {duration(round(seconds) * 1e9)}: {', '.join(named)}{more}."
