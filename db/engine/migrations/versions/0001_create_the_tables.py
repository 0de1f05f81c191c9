"""Create the tables."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def _tallied() -> list[sa.Column[Any]]:
    return [
        sa.Column("trials", sa.BigInteger(), nullable=False),
        sa.Column("failed_trials", sa.BigInteger(), nullable=False),
        sa.Column("first_seen_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("last_seen_at", sa.DateTime(timezone=True), nullable=True),
    ]


def _trial() -> sa.ForeignKey:
    return sa.ForeignKey("trial.trial_id", ondelete="CASCADE")


def upgrade() -> None:
    op.create_table(
        "build",
        *_tallied(),
        sa.Column("build_id", sa.String(), primary_key=True),
        sa.Column("label", sa.String(), nullable=True),
        sa.Column("torch", sa.String(), nullable=False),
        sa.Column("torch_git", sa.String(), nullable=True),
        sa.Column("torch_variant", sa.String(), nullable=True),
        sa.Column("cuda", sa.String(), nullable=True),
        sa.Column("driver", sa.String(), nullable=True),
        sa.Column("triton", sa.String(), nullable=True),
        sa.Column("cudnn", sa.String(), nullable=True),
        sa.Column("python", sa.String(), nullable=True),
        sa.Column("os", sa.String(), nullable=True),
        sa.Column("compiler", sa.String(), nullable=True),
        sa.Column("packages", sa.JSON(), nullable=False),
        sa.Column("settings", sa.JSON(), nullable=False),
    )
    op.create_table(
        "data_version",
        sa.Column("id", sa.Integer(), autoincrement=False, primary_key=True),
        sa.Column("version", sa.BigInteger(), nullable=False),
    )
    op.create_table(
        "machine",
        *_tallied(),
        sa.Column("machine_id", sa.String(), primary_key=True),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("device", sa.String(), nullable=False),
        sa.Column("device_name", sa.String(), nullable=False),
        sa.Column("device_count", sa.BigInteger(), nullable=True),
        sa.Column("device_memory_bytes", sa.BigInteger(), nullable=True),
        sa.Column("power_limit_w", sa.Float(), nullable=True),
        sa.Column("cpu_name", sa.String(), nullable=True),
        sa.Column("cpu_count", sa.BigInteger(), nullable=True),
        sa.Column("ram_bytes", sa.BigInteger(), nullable=True),
        sa.Column("threads", sa.BigInteger(), nullable=True),
    )
    op.create_table(
        "run",
        *_tallied(),
        sa.Column("run_id", sa.String(), primary_key=True),
        sa.Column("suite", sa.String(), nullable=True),
        sa.Column("label", sa.String(), nullable=True),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("ended_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("planned_trials", sa.BigInteger(), nullable=True),
        sa.Column("status", sa.String(length=32), nullable=True),
    )
    op.create_table(
        "strategy",
        *_tallied(),
        sa.Column("strategy_id", sa.String(), primary_key=True),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("kind", sa.String(length=32), nullable=False),
        sa.Column("backend", sa.String(), nullable=True),
        sa.Column("mode", sa.String(), nullable=True),
        sa.Column("dynamic", sa.Boolean(), nullable=True),
        sa.Column("fullgraph", sa.Boolean(), nullable=False),
        sa.Column("scope", sa.String(), nullable=False),
        sa.Column("cache", sa.String(length=32), nullable=False),
        sa.Column("options", sa.JSON(), nullable=False),
    )
    op.create_index(op.f("ix_strategy_name"), "strategy", ["name"], unique=False)

    op.create_table(
        "workload",
        *_tallied(),
        sa.Column("workload_id", sa.String(), primary_key=True),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("version", sa.String(), nullable=False),
        sa.Column("task", sa.String(length=32), nullable=False),
        sa.Column("batch_size", sa.BigInteger(), nullable=True),
        sa.Column("shape", sa.JSON(), nullable=False),
        sa.Column("dtype", sa.String(), nullable=False),
        sa.Column("items_per_iteration", sa.Float(), nullable=True),
        sa.Column("item", sa.String(), nullable=True),
    )
    op.create_index(op.f("ix_workload_name"), "workload", ["name"], unique=False)

    op.create_table(
        "series",
        *_tallied(),
        sa.Column("series_id", sa.String(), primary_key=True),
        sa.Column("machine_id", sa.String(), sa.ForeignKey("machine.machine_id"), nullable=False),
        sa.Column("workload_id", sa.String(), sa.ForeignKey("workload.workload_id"), nullable=False),
        sa.Column("strategy_id", sa.String(), sa.ForeignKey("strategy.strategy_id"), nullable=False),
    )
    op.create_index(
        op.f("ix_series_machine_id_workload_id_strategy_id"),
        "series",
        ["machine_id", "workload_id", "strategy_id"],
        unique=True,
    )
    op.create_index(op.f("ix_series_strategy_id"), "series", ["strategy_id"], unique=False)
    op.create_index(op.f("ix_series_workload_id"), "series", ["workload_id"], unique=False)

    op.create_table(
        "latest",
        sa.Column("series_id", sa.String(), sa.ForeignKey("series.series_id"), primary_key=True),
        sa.Column("run_id", sa.String(), sa.ForeignKey("run.run_id"), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=False),
    )
    op.create_table(
        "trial",
        sa.Column("trial_id", sa.String(), primary_key=True),
        sa.Column("content_hash", sa.String(), nullable=False),
        sa.Column("series_id", sa.String(), sa.ForeignKey("series.series_id"), nullable=False),
        sa.Column("build_id", sa.String(), sa.ForeignKey("build.build_id"), nullable=False),
        sa.Column("run_id", sa.String(), sa.ForeignKey("run.run_id"), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("ended_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("suite", sa.String(), nullable=True),
        sa.Column("label", sa.String(), nullable=True),
        sa.Column("source_kind", sa.String(length=32), nullable=False),
        sa.Column("source_name", sa.String(), nullable=False),
        sa.Column("machine_name", sa.String(), nullable=False),
        sa.Column("device_uuid", sa.String(), nullable=True),
        sa.Column("build_label", sa.String(), nullable=True),
        sa.Column("status", sa.String(length=32), nullable=False),
        sa.Column("failure_kind", sa.String(length=32), nullable=True),
        sa.Column("failure_message", sa.String(), nullable=True),
        sa.Column("latency_ns", sa.Float(), nullable=True),
        sa.Column("latency_p05_ns", sa.Float(), nullable=True),
        sa.Column("latency_p95_ns", sa.Float(), nullable=True),
        sa.Column("latency_p99_ns", sa.Float(), nullable=True),
        sa.Column("samples", sa.BigInteger(), nullable=True),
        sa.Column("control_latency_ns", sa.Float(), nullable=True),
        sa.Column("control_samples", sa.BigInteger(), nullable=True),
        sa.Column("time_to_first_result_ns", sa.BigInteger(), nullable=True),
        sa.Column("first_call_ns", sa.BigInteger(), nullable=True),
        sa.Column("until_steady_ns", sa.BigInteger(), nullable=True),
        sa.Column("calls_until_steady", sa.BigInteger(), nullable=True),
        sa.Column("process_tree_cpu_ns", sa.BigInteger(), nullable=True),
        sa.Column("peak_bytes", sa.BigInteger(), nullable=True),
        sa.Column("peak_reserved_bytes", sa.BigInteger(), nullable=True),
        sa.Column("peak_with_compile_bytes", sa.BigInteger(), nullable=True),
        sa.Column("peak_rss_bytes", sa.BigInteger(), nullable=True),
        sa.Column("control_peak_bytes", sa.BigInteger(), nullable=True),
        sa.Column("graphs", sa.BigInteger(), nullable=True),
        sa.Column("graph_breaks", sa.BigInteger(), nullable=True),
        sa.Column("recompiles", sa.BigInteger(), nullable=True),
        sa.Column("numerics_status", sa.String(length=32), nullable=True),
        sa.Column("suspect", sa.Boolean(), nullable=True),
        sa.Column("cpu_stall_fraction", sa.Float(), nullable=True),
    )
    op.create_index(op.f("ix_trial_build_id_started_at"), "trial", ["build_id", "started_at"], unique=False)
    op.create_index(op.f("ix_trial_run_id_series_id"), "trial", ["run_id", "series_id"], unique=False)
    op.create_index(op.f("ix_trial_series_id_started_at"), "trial", ["series_id", "started_at"], unique=False)
    op.create_index(op.f("ix_trial_started_at"), "trial", ["started_at"], unique=False)

    op.create_table(
        "trial_detail",
        sa.Column(
            "trial_id", sa.String(), sa.ForeignKey("trial.trial_id", ondelete="CASCADE"), primary_key=True
        ),
        sa.Column("failure", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("cold_start", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("summary", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("memory", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("compiler", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("numerics", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("device_state", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("host_state", sa.JSON(none_as_null=True), nullable=True),
    )
    op.create_table(
        "trial_samples",
        sa.Column(
            "trial_id", sa.String(), sa.ForeignKey("trial.trial_id", ondelete="CASCADE"), primary_key=True
        ),
        sa.Column("kind", sa.String(), primary_key=True),
        sa.Column("n", sa.BigInteger(), nullable=False),
        sa.Column("codec", sa.String(), nullable=False),
        sa.Column("data", sa.LargeBinary(), nullable=False),
        sqlite_with_rowid=False,
    )
    op.execute("INSERT INTO data_version (id, version) VALUES (1, 0)")
