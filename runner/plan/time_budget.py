"""A run of so many minutes: what is worth most first, and nothing that is not expected to end in time."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable

from compilewatch.db.errors import ConfigError
from compilewatch.db.records.trial import StrategyKind
from compilewatch.db.units import duration, plural
from compilewatch.runner.plan.durations import Durations
from compilewatch.runner.plan.jobs import Job
from compilewatch.runner.plan.plan import Plan
from compilewatch.runner.plan.trial_spec import TrialSpec

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
