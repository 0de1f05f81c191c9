"""How long the trials of a plan will still take."""

from __future__ import annotations

import math
import statistics
import time
from collections import Counter
from collections.abc import Callable, Sequence

from compilewatch.db.units import duration
from compilewatch.runner.plan.durations import Case, Durations


class TimeLeft:
    """Expected seconds left: what each waiting trial is expected to take and what lies between two of them,
    and as long for the machine's control series after the trials as before; at most `remaining_s`.
    """

    def __init__(
        self,
        cases: Sequence[Case],
        durations: Durations,
        remaining_s: Callable[[], float] = lambda: math.inf,
        *,
        canaries: bool = False,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._waiting = list(cases)
        self._durations = durations
        self._remaining_s = remaining_s
        self._canaries = canaries
        self._monotonic = monotonic
        self._mark = monotonic()
        self._canaries_s: float | None = None
        self._between_s: list[float] = []

    @property
    def has_control_series(self) -> bool:
        """Whether the machine's control series comes first."""
        return self._canaries

    def started(self) -> None:
        """A trial begins."""
        if self._canaries_s is None:
            self._canaries_s = self._monotonic() - self._mark if self._canaries else 0.0
            self._mark = self._monotonic()

    def finished(self, case: Case, seconds: float) -> None:
        """A trial of `case` ended after `seconds`, which a wait for the device is no part of."""
        self._waiting.remove(case)
        self._durations.note(case, seconds)
        now = self._monotonic()
        self._between_s.append(max(0.0, now - self._mark - seconds))
        self._mark = now

    def seconds(self) -> float:
        """Of all trials that wait, the one that runs among them."""
        waiting = Counter(self._waiting)
        expected_s = sum(self._durations.expected_s(case) * count for case, count in waiting.items())
        if self._between_s:
            expected_s += statistics.median(self._between_s) * len(self._waiting)
        return min(expected_s + (self._canaries_s or 0.0), self._remaining_s())

    def text(self) -> str:
        """To the second: "1.53 min", "0 s"."""
        return duration(round(self.seconds()) * 1e9)
