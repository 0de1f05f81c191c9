"""The times of trials that count, one value per trial, before anything is summed up: its latency, and that of
eager beside it, its control (`controls`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from pandas import DataFrame, Series

from compilewatch.db.columns.case import CASE_KEYS
from compilewatch.db.columns.trial import TIMED
from compilewatch.db.metrics.controls import Control, is_eager, with_same_run
from compilewatch.db.metrics.device_times import trial_device_times, without_mixing
from compilewatch.db.metrics.eligibility import passed_mask, positive, suspect_mask, wild_trials
from compilewatch.db.metrics.groups import Bools, Floats, Groups, floats
from compilewatch.db.metrics.percentiles import measured

WORKLOAD_KEYS = ("machine_id", "build_id", "workload_id")


@dataclass(frozen=True, slots=True)
class TrialTimes:
    """Figures per trial, NaN where unknown or where the trial does not count; `control` is per group."""

    latency_ns: Floats
    control_ns: Floats
    compile_cost_ns: Floats
    others: dict[str, Floats]
    """By the names of `db.columns.trial.TIMED`: what a case has the mean of."""
    control: list[Control]
    pooled_eager_ns: Floats
    """Per group: geometric mean of the eager of every trial of the workload, whatever its strategy."""
    device: dict[str, Floats]
    """The columns of `db.metrics.device_times.trial_device_times`."""
    timed: Bools
    """Whether any time of the trial counts."""
    wild: Bools
    """As `db.metrics.eligibility.wild_trials`."""

    @property
    def speedup(self) -> Floats:
        return self.control_ns / self.latency_ns


def trial_times(trials: DataFrame, groups: Groups, *, of: Sequence[str] = WORKLOAD_KEYS) -> TrialTimes:
    """`trials` as for `summarize_cases`; each of `groups` holds trials of one case, and of one value of `of`,
    among whose trials eager is pooled.
    """
    wild = wild_trials(trials)
    timed = without_mixing(trials, groups, passed_mask(trials) & ~suspect_mask(trials) & ~wild)
    latency = np.where(timed, positive(trials["latency_ns"]), np.nan)
    control, origin = with_same_run(trials, groups, positive(trials["control_latency_ns"]), latency)
    return TrialTimes(
        latency_ns=latency,
        control_ns=control,
        # eager compiles nothing: its first calls are the part that compile cost leaves out
        compile_cost_ns=np.where(timed & ~is_eager(trials), floats(trials["trial_compile_cost_ns"]), np.nan),
        others={name: np.where(timed, measured(trials, name), np.nan) for name in TIMED},
        control=origin,
        pooled_eager_ns=_pooled(trials, groups, np.where(is_eager(trials), latency, control), of),
        device=trial_device_times(trials, groups, timed),
        timed=timed & ~np.isnan(latency),
        wild=wild,
    )


POOLED_EAGER = "pooled_eager_ns"


def with_pooled_eager(trials: DataFrame) -> DataFrame:
    """`trials` of one side with the eager of each one's workload as a column: it stays the same number where
    some strategies are left out afterwards.
    """
    groups = Groups.by(trials, CASE_KEYS)
    pooled = trial_times(trials, groups).pooled_eager_ns
    return trials.assign(**{POOLED_EAGER: pooled[groups.codes]})


def _pooled(trials: DataFrame, groups: Groups, eager_ns: Floats, keys: Sequence[str]) -> Floats:
    """Per group the geometric mean of what is known of all trials with its `keys` that ran the newest code of
    these, or what is said of it.
    """
    if POOLED_EAGER in trials:
        said: Floats = floats(trials[POOLED_EAGER])[groups.last_row(np.arange(len(trials)))]
        return said
    whole = Groups.by(trials, list(keys))
    if trials["code_hash"].nunique() > 1:
        code = trials["code_hash"].astype("str").fillna("").to_numpy(dtype=object)
        moments = trials["started_at"].astype("datetime64[us, UTC]").to_numpy(dtype="datetime64[us]")
        newest = code[whole.last_row(~np.isnan(eager_ns), moments)][whole.codes]
        eager_ns = np.where(code == newest, eager_ns, np.nan)
    pooled: Floats = whole.mean(eager_ns)[whole.codes[groups.last_row(np.arange(len(trials)))]]
    return pooled


# What compiling cost one trial.
#
# Compile cost is the cold calls until steady, minus as many steady calls, of the compiled trial, minus the
# same of eager. Eager's part is already gone from a trial of ours: its first eager call, with the library
# and allocator set-up that any first call pays, ran earlier in the same process and is outside the compiled
# calls. Importing the compiler stack is a cold-start phase of its own and no part of it either.


def compile_cost_ns(until_steady_ns: Series, calls_until_steady: Series, latency_ns: Series) -> Series:
    """Per trial, missing where a part is. May be negative: noise of a trial that compiled nothing.

    The columns of those names of a trials frame, one value per trial. Of no calls nothing is taken off: some
    sources tell a cost without any, and no latency.
    """
    steady_ns = calls_until_steady * latency_ns
    return until_steady_ns - steady_ns.mask((calls_until_steady == 0).fillna(False), 0)
