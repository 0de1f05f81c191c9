"""The keys of `[run]` that say how samples are taken."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from runner.config_types import Positive, Section
from runner.worker.sampling import SamplingPlan

_NS = 1_000_000_000
Seconds = Annotated[float, Field(gt=0)]


def _seconds(ns: int) -> float:
    return ns / _NS


class SamplingSettings(Section):
    """How long a side warms up, and how many samples in what blocks it gives. Bounds hold per side.

    Warm is a side after `warmup_calls` and `warmup_s`, once the median of the last third of its calls is not
    more than 10 % below that of the third before; it has no longer than `warmup_max_calls` or `warmup_max_s`.
    """

    samples: Annotated[int, Field(ge=5)] = Field(
        default=SamplingPlan.samples, description="timed iterations per trial, at least"
    )
    max_samples: Positive = Field(
        default=SamplingPlan.max_samples, description="at most, while the interval below is not reached"
    )
    relative_interval: Annotated[float, Field(gt=0, lt=1)] = Field(
        default=SamplingPlan.relative_interval,
        description="half the width of the median's 95 % interval, over the median, that is enough",
    )
    sampling_max_s: Seconds = Field(
        default=_seconds(SamplingPlan.max_ns), description="no new samples after this, the fewest excepted"
    )
    block_s: Seconds = Field(
        default=_seconds(SamplingPlan.block_ns),
        description="eager and compiled take turns at least this often",
    )
    settle_s: Annotated[float, Field(ge=0, le=10)] = Field(
        default=_seconds(SamplingPlan.settle_ns), description="untimed steps at the start of each block"
    )
    warmup_calls: Positive = Field(default=SamplingPlan.warmup_calls, description="at least")
    warmup_s: Annotated[float, Field(ge=0)] = Field(
        default=_seconds(SamplingPlan.warmup_ns), description="at least"
    )
    warmup_max_calls: Positive = Field(default=SamplingPlan.warmup_max_calls, description="steady or not")
    warmup_max_s: Seconds = Field(default=_seconds(SamplingPlan.warmup_max_ns), description="steady or not")
    flush_l2: bool = Field(
        default=SamplingPlan.flush_l2, description="overwrite the GPU's L2 cache before each sample"
    )

    def sampling_plan(self) -> SamplingPlan:
        """As the measured process takes it."""
        return SamplingPlan(
            samples=self.samples,
            max_samples=self.max_samples,
            relative_interval=self.relative_interval,
            max_ns=_ns(self.sampling_max_s),
            block_ns=_ns(self.block_s),
            settle_ns=_ns(self.settle_s),
            warmup_calls=self.warmup_calls,
            warmup_ns=_ns(self.warmup_s),
            warmup_max_calls=self.warmup_max_calls,
            warmup_max_ns=_ns(self.warmup_max_s),
            flush_l2=self.flush_l2,
        )


def _ns(seconds: float) -> int:
    return round(seconds * _NS)
