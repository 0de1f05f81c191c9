"""Where the eager of a compiled trial comes from, its control: the same inputs, machine, build and run."""

from __future__ import annotations

from enum import StrEnum

import numpy as np
from pandas import DataFrame

from compilewatch.db.metrics.groups import Bools, Floats, Groups, equal_to
from compilewatch.db.records.strategies import EAGER, settings_of_name
from compilewatch.db.records.trial import SourceKind, StrategyKind

_RUN_KEYS = ["machine_id", "build_id", "workload_id", "run_id"]
_SETTINGS = "settings_of_name"


class Control(StrEnum):
    """Where eager's value beside a compiled one comes from."""

    IN_PROCESS = "in_process"  # eager samples interleaved with the compiled ones
    SAME_RUN = "same_run"  # eager trials of the same run, in other processes
    NONE = "none"


def is_eager(trials: DataFrame) -> Bools:
    """One flag per row of a frame with column `strategy_kind`."""
    return equal_to(trials["strategy_kind"], StrategyKind.EAGER.value)


def with_same_run(
    trials: DataFrame, cases: Groups, own: Floats, values: Floats
) -> tuple[Floats, list[Control]]:
    """Eager's value for every compiled trial, and per case where it comes from.

    `own`: the trial's own control, NaN without one. `values`: the trial's value, NaN where it does not count.
    A case without any own control takes the mean of the eager trials of its run that had the same settings;
    eager trials get none.
    """
    eager = is_eager(trials)
    own = np.where(eager | np.isnan(values), np.nan, own)
    has_own = cases.sum(~np.isnan(own)) > 0
    wanting = ~(eager | np.isnan(values) | has_own[cases.codes])
    control = own
    if wanting.any():
        alike = trials[_RUN_KEYS].assign(**{_SETTINGS: _settings(trials)})
        runs = Groups.by(alike, [*_RUN_KEYS, _SETTINGS])
        eager_of_run = runs.mean(np.where(eager, values, np.nan))[runs.codes]
        control = np.where(wanting, eager_of_run, own)
    has_control = cases.sum(~np.isnan(control)) > 0
    origin = [
        Control.IN_PROCESS if mine else Control.SAME_RUN if some else Control.NONE
        for mine, some in zip(has_own.tolist(), has_control.tolist(), strict=True)
    ]
    return control, origin


def matched_control(control: Floats, own: Floats, ratio: Floats) -> Floats:
    """Per case the value of eager that a ratio is taken against: that many times its own.

    Where trials lack eager, the mean of eager alone is of other trials than the value beside it.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        agree = np.isnan(ratio) | np.isclose(control / own, ratio, rtol=1e-12, atol=0)
    return np.where(agree, control, own * ratio)


def _settings(trials: DataFrame) -> list[str]:
    """What eager beside a trial must share with it, which an imported result has in its strategy's name: the
    layout of its memory, other arguments. What was measured here has no such settings.
    """
    named = trials[["source_kind", "strategy_kind", "strategy"]]
    known = {each: _settings_of(*each) for each in named.drop_duplicates().itertuples(index=False, name=None)}
    return [known[each] for each in named.itertuples(index=False, name=None)]


def _settings_of(source: str, kind: str, strategy: str) -> str:
    if source == SourceKind.MEASURED:
        return ""
    if kind == StrategyKind.EAGER and strategy.partition("+")[0] != EAGER.name:
        return f"of {strategy}"  # an engine of its own, which earlier releases stored as eager
    return settings_of_name(strategy)
