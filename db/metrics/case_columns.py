"""The columns of a frame of cases, and their types: what every page, table and command reads.

`summary_columns` of `db.metrics.cases` computes them, `db.columns.metrics` names them.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from pandas import DataFrame
from pandas.api.extensions import ExtensionArray

MIXED = "mixed"  # the status of a case of which some trials failed
CASE_KEYS = ["machine_id", "build_id", "workload_id", "strategy_id"]

_LABELS = {
    **dict.fromkeys(("series_id", "machine", "device", "device_name"), "str"),
    "threads": "Int64",
    **dict.fromkeys(("build_label", "torch", "torch_variant", "cuda", "driver", "triton", "cudnn"), "str"),
    **{"python": "str", "os": "str", "settings": "object", "code": "str"},
    **dict.fromkeys(("workload", "workload_version", "task"), "str"),
    **{"batch_size": "Int64", "shape": "object", "dtype": "str", "items_per_iteration": "Float64"},
    **dict.fromkeys(("item", "strategy", "strategy_kind", "cache", "scope"), "str"),
    **dict.fromkeys(("source_kind", "source_name"), "str"),
}
LABELS = list(_LABELS)

CASE_COLUMNS: dict[str, str] = {
    **dict.fromkeys(CASE_KEYS, "str"),
    **_LABELS,
    "status": "str",  # ok: no trial failed; failed: every trial did; mixed
    "trials": "Int64",
    "failed_trials": "Int64",
    "suspect_trials": "Int64",
    "counted_trials": "Int64",  # those behind latency: passed, not suspect, with a latency
    "failure_kind": "str",  # the most frequent one
    **dict.fromkeys(("latency_ns", "latency_low_ns", "latency_high_ns"), "Float64"),
    "control_latency_ns": "Float64",  # speedup times latency: the eager that the speedup is taken against
    "control": "str",  # in_process, same_run (eager trials of the same run), none
    **dict.fromkeys(("speedup", "speedup_low", "speedup_high"), "Float64"),
    "timing_method": "str",  # host, gated, cupti, ungated; missing where not known
    "bound": "str",  # host: pipelined wall time exceeds device time by over 10 %; device; missing: unknown
    **dict.fromkeys(("device_ns", "issue_ns", "wall_sync_ns", "wall_pipelined_ns"), "Float64"),
    **dict.fromkeys(("control_device_ns", "control_issue_ns"), "Float64"),
    **dict.fromkeys(("control_wall_sync_ns", "control_wall_pipelined_ns"), "Float64"),
    **dict.fromkeys(("device_speedup", "issue_speedup"), "Float64"),
    **dict.fromkeys(("wall_sync_speedup", "wall_pipelined_speedup"), "Float64"),
    "interval_method": "str",  # of speedup: bootstrap, student_t, reference (eager is 1 by definition), none
    **dict.fromkeys(("compile_cost_ns", "compile_cost_low_ns", "compile_cost_high_ns"), "Float64"),
    "break_even": "str",  # steps, never, unknown
    "break_even_reason": "str",  # why never or unknown
    "break_even_steps": "Int64",
    "break_even_interval": "str",  # bounded; open: the upper end is never; never: both ends; none
    "break_even_low": "Int64",
    "break_even_high": "Int64",
    "break_even_time_ns": "Float64",  # run time at break-even, compile cost included
    **dict.fromkeys(("time_to_first_result_ns", "process_tree_cpu_ns", "first_call_cpu_ns"), "Float64"),
    **dict.fromkeys(("first_call_instructions", "throughput_per_s"), "Float64"),
    **dict.fromkeys(("peak_bytes", "control_peak_bytes", "memory_ratio"), "Float64"),
    **dict.fromkeys(("graphs", "graph_breaks", "recompiles"), "Int64"),
    "numerics_status": "str",  # the worst of all trials
    "nothing_compiled": "bool",
    "last_started_at": "datetime64[us, UTC]",
}


def empty_frame(columns: dict[str, str]) -> DataFrame:
    return DataFrame({name: pd.Series([], dtype=dtype) for name, dtype in columns.items()})


def typed_frame(values: Mapping[str, object], columns: dict[str, str]) -> DataFrame:
    """`values` by column, ordered and typed as `columns` says; NaN becomes a missing value.

    Raises KeyError where a column was forgotten.
    """
    # Column by column: of a whole frame, pandas asks for each of its ninety several times over.
    return DataFrame({name: _typed(values[name], pandas_dtype(dtype)) for name, dtype in columns.items()})


@cache
def pandas_dtype(name: str) -> Any:
    """The type of that name, for which pandas asks all the types it knows."""
    return pd.api.types.pandas_dtype(name)


def _typed(value: Any, dtype: Any) -> Any:
    if isinstance(value, list):
        # through objects: as floats, whole numbers beyond 2^53 would lose their last digits
        value = np.array(value, dtype=np.object_)
    values = value.array if isinstance(value, pd.Series) else value
    is_typed = isinstance(values, ExtensionArray) and values.dtype == dtype
    return values if is_typed else pd.array(values, dtype=dtype)
