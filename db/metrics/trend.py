"""The history of a series: one point per run, or per build, with how far trials spread around it.

A point whose passed trials are all suspect (throttled, shared device) is drawn from them and marked, instead
of leaving a hole; otherwise suspect trials count in no time.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from pandas import DataFrame

from compilewatch.db.columns.case import CASE_KEYS
from compilewatch.db.columns.metrics import BANDED, POINT_COLUMNS, STORED_POINT
from compilewatch.db.metrics.cases import like_newest, summary_columns
from compilewatch.db.metrics.eligibility import passed_mask, positive, suspect_mask, without_cancelled
from compilewatch.db.metrics.frames import empty_frame, plain_rows, typed_frame
from compilewatch.db.metrics.groups import Bools, Floats, Groups
from compilewatch.db.metrics.throughput import items_per_step, rates_per_second
from compilewatch.db.metrics.trial_times import WORKLOAD_KEYS, TrialTimes, trial_times


def series_points(trials: DataFrame, *, by: Literal["run", "build"] = "run") -> DataFrame:
    """One row per case, run and conditions (and build, where a run has several), or per case and build.

    Oldest first. Columns and types are `POINT_COLUMNS`: those of a case for the point's own trials, and the
    bands around it. `trials` as for `summarize_cases`. A point does not depend on other points; that of a
    build has the code and the conditions of its newest trial.
    """
    trials = without_cancelled(trials)
    if by == "build":
        trials = like_newest(trials)
    return empty_frame(POINT_COLUMNS) if trials.empty else typed_frame(_points(trials, by), POINT_COLUMNS)


def run_points(trials: DataFrame) -> list[dict[str, Any]]:
    """What the table `run_case` keeps of `series_points` by run: the columns of `STORED_POINT`, None without
    a value.

    `trials` are all those of their workloads and runs: eager is pooled among them.
    """
    trials = without_cancelled(trials)
    return [] if trials.empty else plain_rows(_points(trials, "run"), STORED_POINT)


def _points(trials: DataFrame, by: Literal["run", "build"]) -> dict[str, object]:
    started = trials["started_at"].astype("datetime64[us, UTC]")
    moments = started.to_numpy(dtype="datetime64[us]")
    apart = ["run_id", "conditions_id"] if by == "run" else []
    groups = Groups.by(trials, [*CASE_KEYS, *apart])
    # Oldest first from here on: ninety columns take longer to sort once they are summed up.
    groups = groups.renumbered(moments[groups.last_row(moments)])
    passed, suspect = passed_mask(trials), suspect_mask(trials)
    sound = groups.sum(passed & ~suspect) > 0
    only_suspect = ~sound & (groups.sum(passed) > 0)
    marked_trials = trials.assign(suspect=suspect & ~only_suspect[groups.codes])
    newest = groups.last_row(moments, trials["trial_id"].to_numpy(str))
    first = groups.last_row(-moments.astype(np.int64))
    times = trial_times(marked_trials, groups, of=[*WORKLOAD_KEYS, *apart])
    columns = summary_columns(marked_trials, groups, times)
    return columns | {
        **{name: trials[name].array.take(newest) for name in ("run_id", "conditions_id")},
        "first_started_at": started.array.take(first),
        "suspect_trials": groups.sum(suspect),
        "point_suspect": only_suspect,
        **_bands(marked_trials, groups, times, passed),
    }


def _bands(trials: DataFrame, groups: Groups, times: TrialTimes, passed: Bools) -> dict[str, Floats]:
    values = {
        "latency_ns": times.latency_ns,
        "speedup": times.speedup,
        "compile_cost_ns": times.compile_cost_ns,
        "peak_bytes": np.where(passed, positive(trials["peak_bytes"]), np.nan),
        "throughput_per_s": rates_per_second(items_per_step(trials), times.latency_ns),
        **times.others,
        **times.device,
    }
    bands: dict[str, Floats] = {}
    for metric in BANDED:
        present = groups.present(values[metric])
        for end, share in (("p10", 0.1), ("p90", 0.9)):
            bands[f"{metric}_{end}"] = np.where(present.n >= 2, present.quantile(share), np.nan)
    return bands
