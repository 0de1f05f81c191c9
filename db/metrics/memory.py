"""How much less memory compiled needs: eager peak / compiled peak, above 1 is less.

Both peaks are those of the warm iterations, without compilation; the peak with compilation is a column of the
trial and has no eager counterpart.
"""

from __future__ import annotations

import numpy as np
from pandas import DataFrame

from db.metrics.controls import with_same_run
from db.metrics.eligibility import positive
from db.metrics.groups import Bools, Floats, Groups


def passed_peaks(trials: DataFrame, passed: Bools) -> Floats:
    """Bytes per trial, NaN where unknown or where the trial does not count."""
    return np.where(passed, positive(trials["peak_bytes"]), np.nan)


def memory_columns(
    trials: DataFrame, groups: Groups, *, passed: Bools, reference: Bools
) -> dict[str, object]:
    """Columns of many cases; the ratio is the median of the trials' own, for eager (`reference`) 1."""
    peak = passed_peaks(trials, passed)
    control, _ = with_same_run(trials, groups, positive(trials["control_peak_bytes"]), peak)
    peaks = groups.median(peak)
    return {
        "peak_bytes": peaks,
        "control_peak_bytes": groups.median(control),
        "memory_ratio": np.where(reference & ~np.isnan(peaks), 1.0, groups.median(control / peak)),
    }
