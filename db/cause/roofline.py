"""What a step's operations and bytes would take at the rates that the machine reached in its canaries.

Source: Williams, Waterman, Patterson, "Roofline", CACM 52(4), 2009; the roofs are measured, not nominal.
"""

from __future__ import annotations

from dataclasses import dataclass

from compilewatch.db.cause.trial_words import step_times
from compilewatch.db.records.trial import Trial
from compilewatch.db.units import duration


@dataclass(frozen=True)
class Roofs:
    """What a device reached a second: operations of a matrix product in `dtype`, bytes read and written."""

    dtype: str
    operations_per_s: float
    bytes_per_s: float


@dataclass(frozen=True)
class Roofline:
    """An eager step, in nanoseconds: its operations and its bytes at those rates, and what it takes."""

    operations_ns: float
    bytes_ns: float
    step_ns: float

    @property
    def bound(self) -> str:
        """By what a step is bound that does nothing else."""
        return "compute-bound" if self.operations_ns >= self.bytes_ns else "memory-bound"

    @property
    def sentence(self) -> str:
        operations, moved, step = map(duration, (self.operations_ns, self.bytes_ns, self.step_ns))
        work = f"operations need {operations}, bytes at most {moved}, of its {step}"
        return f"An eager step is {self.bound}: {work}."


def roofline(trial: Trial, roofs: Roofs | None) -> Roofline | None:
    """None where work, time or roofs are not known, or the product was measured in another dtype."""
    profile, step_ns = trial.profile, step_times(trial).eager_ns
    if profile is None or roofs is None or not profile.flops or not profile.bytes or not step_ns:
        return None
    if roofs.dtype != trial.workload.dtype:
        return None
    return Roofline(
        profile.flops / roofs.operations_per_s * 1e9, profile.bytes / roofs.bytes_per_s * 1e9, step_ns
    )
