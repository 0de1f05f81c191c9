"""How many times faster compiled is than eager: eager latency / compiled latency, above 1 is faster."""

from __future__ import annotations

import numpy as np

from db.metrics.groups import Bools
from db.metrics.intervals import Medians, Method


def speedup_columns(speedups: Medians, *, borrowed: Bools, reference: Bools) -> dict[str, object]:
    """Columns of many cases. Eager (`reference`) is 1 by definition; a `borrowed` control has no interval."""
    hidden = np.where(borrowed, np.nan, 1.0)
    methods = [each.value for each in speedups.method]
    return {
        "speedup": np.where(reference, 1.0, speedups.value),
        "speedup_low": np.where(reference, 1.0, speedups.low * hidden),
        "speedup_high": np.where(reference, 1.0, speedups.high * hidden),
        "interval_method": np.select(
            [reference, borrowed], [Method.REFERENCE.value, Method.NONE.value], methods
        ),
    }
