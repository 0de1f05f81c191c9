"""What compiling cost one trial.

Compile cost is the cold calls until steady, minus as many steady calls, of the compiled trial, minus the
same of eager. Eager's part is already gone from a trial of ours: its first eager call, with the library and
allocator set-up that any first call pays, ran earlier in the same process and is outside the compiled calls.
Importing the compiler stack is a cold-start phase of its own and no part of it either.
"""

from __future__ import annotations

import numpy as np

from db.metrics.groups import Floats


def compile_cost_ns(until_steady_ns: Floats, calls_until_steady: Floats, latency_ns: Floats) -> Floats:
    """Per trial, NaN where a part is unknown. May be negative: noise of a trial that compiled nothing.

    Equal shapes, one value per trial.
    """
    return np.asarray(until_steady_ns - calls_until_steady * latency_ns)
