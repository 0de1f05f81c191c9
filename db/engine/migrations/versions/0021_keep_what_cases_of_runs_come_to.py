"""Keep what the trials of each case in each run come to. Releases make the table anew as they need it, see
`db.columns.point`, and fill it.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0020"

_TEXTS = (
    "source_kind",
    "source_name",
    "machine",
    "build_label",
    "code",
    "status",
    "failure_kind",
    "control",
    "timing_method",
    "bound",
    "interval_method",
    "break_even",
    "break_even_reason",
    "break_even_interval",
    "numerics_status",
)
_INTEGERS = (
    "trials",
    "failed_trials",
    "suspect_trials",
    "wild_trials",
    "counted_trials",
    "break_even_steps",
    "break_even_low",
    "break_even_high",
    "samples",
    "graphs",
    "ops_captured",
    "graph_breaks",
    "recompiles",
)
_FLOATS = (
    "latency_ns",
    "latency_low_ns",
    "latency_high_ns",
    "control_latency_ns",
    "pooled_eager_ns",
    "speedup",
    "speedup_low",
    "speedup_high",
    "device_ns",
    "issue_ns",
    "wall_sync_ns",
    "wall_pipelined_ns",
    "control_device_ns",
    "control_issue_ns",
    "control_wall_sync_ns",
    "control_wall_pipelined_ns",
    "device_speedup",
    "issue_speedup",
    "wall_sync_speedup",
    "wall_pipelined_speedup",
    "compile_cost_ns",
    "compile_cost_low_ns",
    "compile_cost_high_ns",
    "break_even_time_ns",
    "latency_p95_ns",
    "latency_p99_ns",
    "latency_sd_ns",
    "time_to_first_result_ns",
    "process_tree_cpu_ns",
    "first_call_cpu_ns",
    "first_call_instructions",
    "energy_per_step_j",
    "latency_between_sd_ns",
    "throughput_per_s",
    "throughput_low_per_s",
    "throughput_high_per_s",
    "control_throughput_per_s",
    "peak_bytes",
    "control_peak_bytes",
    "memory_ratio",
    "latency_ns_p10",
    "latency_ns_p90",
    "speedup_p10",
    "speedup_p90",
    "throughput_per_s_p10",
    "throughput_per_s_p90",
    "latency_p95_ns_p10",
    "latency_p95_ns_p90",
    "latency_p99_ns_p10",
    "latency_p99_ns_p90",
    "device_ns_p10",
    "device_ns_p90",
    "issue_ns_p10",
    "issue_ns_p90",
    "device_speedup_p10",
    "device_speedup_p90",
    "wall_sync_ns_p10",
    "wall_sync_ns_p90",
    "wall_pipelined_ns_p10",
    "wall_pipelined_ns_p90",
    "issue_speedup_p10",
    "issue_speedup_p90",
    "wall_sync_speedup_p10",
    "wall_sync_speedup_p90",
    "wall_pipelined_speedup_p10",
    "wall_pipelined_speedup_p90",
    "compile_cost_ns_p10",
    "compile_cost_ns_p90",
    "peak_bytes_p10",
    "peak_bytes_p90",
    "energy_per_step_j_p10",
    "energy_per_step_j_p90",
    "time_to_first_result_ns_p10",
    "time_to_first_result_ns_p90",
    "process_tree_cpu_ns_p10",
    "process_tree_cpu_ns_p90",
    "first_call_cpu_ns_p10",
    "first_call_cpu_ns_p90",
    "first_call_instructions_p10",
    "first_call_instructions_p90",
)
_FLAGS = ("first_look", "nothing_compiled", "point_suspect")
_MOMENTS = ("last_started_at", "first_started_at")


def upgrade() -> None:
    op.add_column(
        "data_version", sa.Column("run_case_edition", sa.BigInteger(), server_default="0", nullable=False)
    )
    op.create_table(
        "run_case",
        *(sa.Column(name, sa.String(), nullable=False) for name in ("run_id", "build_id", "series_id")),
        sa.Column("conditions_id", sa.String(), nullable=False),
        *(sa.Column(name, sa.String(), nullable=True) for name in _TEXTS),
        *(sa.Column(name, sa.BigInteger(), nullable=True) for name in _INTEGERS),
        *(sa.Column(name, sa.Float(), nullable=True) for name in _FLOATS),
        *(sa.Column(name, sa.Boolean(), nullable=False) for name in _FLAGS),
        *(sa.Column(name, sa.DateTime(timezone=True), nullable=False) for name in _MOMENTS),
        sa.ForeignKeyConstraint(["run_id"], ["run.run_id"], name=op.f("fk_run_case_run_id_run")),
        sa.ForeignKeyConstraint(["build_id"], ["build.build_id"], name=op.f("fk_run_case_build_id_build")),
        sa.ForeignKeyConstraint(
            ["series_id"], ["series.series_id"], name=op.f("fk_run_case_series_id_series")
        ),
        sa.PrimaryKeyConstraint("run_id", "build_id", "series_id", "conditions_id", name=op.f("pk_run_case")),
    )
    op.create_index("ix_run_case_series_id_last_started_at", "run_case", ["series_id", "last_started_at"])
