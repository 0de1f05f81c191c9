"""What compiling cost one trial.

Compile cost is the cold calls until steady, minus as many steady calls, of the compiled trial, minus the
same of eager. Eager's part is already gone from a trial of ours: its first eager call, with the library and
allocator set-up that any first call pays, ran earlier in the same process and is outside the compiled calls.
Importing the compiler stack is a cold-start phase of its own and no part of it either.
"""

from __future__ import annotations

from pandas import Series


def compile_cost_ns(until_steady_ns: Series, calls_until_steady: Series, latency_ns: Series) -> Series:
    """Per trial, missing where a part is. May be negative: noise of a trial that compiled nothing.

    The columns of those names of a trials frame, one value per trial.
    """
    return until_steady_ns - calls_until_steady * latency_ns
