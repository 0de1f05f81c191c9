"""The columns of a frame of cases: what every page, table and command reads.

A case has the labels of its newest trial, what `TRIAL` sums up over its trials, and what follows from several
of them. `summary_columns` of `db.metrics.cases` computes them.
"""

from __future__ import annotations

from functools import partial

from compilewatch.db import units
from compilewatch.db.columns.column import Column, Holder, Kind, SummaryKind, Threshold
from compilewatch.db.columns.trial import LABELS, TRIAL
from compilewatch.db.units import duration, ratio

MIXED = "mixed"  # the status of a case of which some trials failed
CASE_KEYS = ["machine_id", "build_id", "workload_id", "strategy_id"]

_text = partial(Column, kind=Kind.TEXT, holder=Holder.NONE)
_integer = partial(Column, kind=Kind.INTEGER, holder=Holder.NONE)
_float = partial(Column, kind=Kind.FLOAT, holder=Holder.NONE)
_flag = partial(Column, kind=Kind.FLAG, holder=Holder.NONE, required=True)
_OF_TRIALS = {each.column: each for each in TRIAL}


def _speedup(
    clock: str, name: str, definition: str, threshold: Threshold = Threshold.FINE, *, judged: bool = False
) -> Column:
    """Of one of the times of a GPU: eager's over the other."""
    return _float(
        column=f"{clock}_speedup",
        definition=definition,
        key=f"{clock}_speedup",
        name=name,
        unit="x",
        write=ratio,
        higher_is_better=True,
        axis=(1, "x over eager"),
        banded=True,
        eager_too=False,
        on_every_device=False,
        threshold=threshold,
        judged=judged,
    )


def _summed_up(*columns: str) -> list[Column]:
    """The columns of those names that trials have too."""
    return [_OF_TRIALS[column] for column in columns]


CASE: tuple[Column, ...] = (
    *_summed_up(*CASE_KEYS),
    *_summed_up(*LABELS),
    _text(column="status", definition="ok: no trial failed; failed: every trial did; mixed"),
    _integer(column="trials"),
    _integer(column="failed_trials"),
    _integer(column="suspect_trials"),
    _integer(
        column="wild_trials",
        definition="Set aside: a step time that stands alone, far from those of its siblings in the run.",
    ),
    _integer(
        column="counted_trials",
        definition="Those behind latency: passed, not suspect, not wild, with a latency.",
    ),
    _flag(column="first_look", definition="One counted trial: it ranks nothing and decides nothing."),
    _text(column="failure_kind", definition="The most frequent one."),
    *_summed_up("latency_ns"),
    _float(column="latency_low_ns"),
    _float(column="latency_high_ns"),
    _float(
        column="control_latency_ns",
        definition="Speedup times latency: the eager that the speedup is taken against.",
    ),
    _float(
        column="pooled_eager_ns",
        definition="Eager in every process of the workload, one for all its strategies: of it is break-even.",
    ),
    _text(column="control", definition="in_process, same_run (eager trials of the same run), none"),
    *_summed_up("speedup"),
    _float(column="speedup_low"),
    _float(column="speedup_high"),
    _text(column="timing_method", definition="host, gated, cupti, ungated; missing where not known"),
    _text(
        column="bound",
        definition="host: pipelined wall time exceeds device time by over 10 %; device; missing: unknown",
    ),
    *_summed_up("device_ns", "issue_ns", "wall_sync_ns", "wall_pipelined_ns"),
    *_summed_up("control_device_ns", "control_issue_ns", "control_wall_sync_ns", "control_wall_pipelined_ns"),
    _speedup("device", "Device speedup", "Eager device time over compiled device time.", judged=True),
    _speedup("issue", "Issue speedup", "Eager issue time over compiled issue time.", Threshold.COARSE),
    _speedup("wall_sync", "Wall speedup (synchronised)", "Eager over compiled synchronised wall time."),
    _speedup("wall_pipelined", "Wall speedup (pipelined)", "Eager over compiled pipelined wall time."),
    _text(
        column="interval_method",
        definition="Of speedup: student_t, reference (eager is 1 by definition), none.",
    ),
    _float(
        column="compile_cost_ns",
        definition="Calls until steady, minus as many steady calls.",
        key="compile_cost",
        name="Compile cost",
        unit="ns",
        write=duration,
        axis=(1e9, "s"),
        banded=True,
        interval=("compile_cost_low_ns", "compile_cost_high_ns"),
        eager_too=False,
        threshold=Threshold.COARSE,
        judged=True,
    ),
    _float(column="compile_cost_low_ns"),
    _float(column="compile_cost_high_ns"),
    _text(column="break_even", definition="steps, never, unknown"),
    _text(column="break_even_reason", definition="Why never or unknown."),
    _integer(
        column="break_even_steps",
        definition="Steps after which compiling has paid for itself; never, where compiled is not faster.",
        key="break_even",
        name="Break-even",
        unit="steps",
        write=units.steps,
        axis=(1, "steps"),
        ends=("break_even_low", "break_even_high"),
        interval=("break_even_low", "break_even_high"),
        eager_too=False,
        threshold=Threshold.COARSE,
        judged=True,
    ),
    _text(
        column="break_even_interval",
        definition="bounded; open: the upper end is never; never: both ends; none",
    ),
    _integer(column="break_even_low"),
    _integer(column="break_even_high"),
    _float(column="break_even_time_ns", definition="Run time at break-even, compile cost included."),
    *(each for each in TRIAL if each.summary is SummaryKind.MEAN),
    _float(
        column="latency_between_sd_ns",
        definition="Standard deviation of the medians of a case's processes.",
        key="latency_between_sd",
        name="Standard deviation between processes",
        unit="ns",
        write=duration,
    ),
    _integer(column="samples", definition="Timed steps of the process that has fewest."),
    *_summed_up("throughput_per_s"),
    _float(column="throughput_low_per_s"),
    _float(column="throughput_high_per_s"),
    _float(column="control_throughput_per_s", definition="The same of the eager it is set against."),
    *_summed_up("peak_bytes", "control_peak_bytes"),
    _float(
        column="memory_ratio",
        definition="Eager peak over compiled peak; above 1 needs less.",
        key="memory_ratio",
        name="Memory ratio",
        unit="x",
        write=ratio,
        higher_is_better=True,
    ),
    *(each for each in TRIAL if each.summary in (SummaryKind.LARGEST, SummaryKind.SMALLEST)),
    *_summed_up("gpu_utilization_percent"),
    _text(column="numerics_status", definition="The worst of all trials."),
    _flag(column="nothing_compiled", definition="Compiled, and the compiler took no graph."),
    Column(column="last_started_at", kind=Kind.MOMENT, holder=Holder.NONE),
)

_DTYPES = {
    **{Kind.TEXT: "str", Kind.MOMENT: "datetime64[us, UTC]", Kind.INTEGER: "Int64", Kind.FLOAT: "Float64"},
    **{Kind.FLAG: "bool", Kind.JSON: "object"},
}


def _dtype(column: Column) -> str:
    # A mean of trials may lie between two whole numbers.
    is_mean = column.summary in (SummaryKind.MEAN, SummaryKind.PASSED)
    return "Float64" if is_mean else _DTYPES[column.kind]


CASE_COLUMNS: dict[str, str] = {each.column: _dtype(each) for each in CASE}
"""Name -> pandas dtype."""
