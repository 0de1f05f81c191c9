"""Create the tables, as 33 revisions before the first release had come to."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0033"
down_revision = None

_TEXT = sa.String()
_WORD = sa.String(length=32)
"""One of a few values."""
_INTEGER = sa.BigInteger()
_FLOAT = sa.Float()
_FLAG = sa.Boolean()
_MOMENT = sa.DateTime(timezone=True)
_JSON = sa.JSON()

_Columns = list[sa.Column[Any]]
_TIMES = ("device_ns", "issue_ns", "wall_sync_ns", "wall_pipelined_ns")


def _key(*names: str, of: sa.types.TypeEngine[Any] = _TEXT) -> _Columns:
    return [sa.Column(name, of, primary_key=True) for name in names]


def _needed(kind: sa.types.TypeEngine[Any], *names: str) -> _Columns:
    return [sa.Column(name, kind, nullable=False) for name in names]


def _optional(kind: sa.types.TypeEngine[Any], *names: str) -> _Columns:
    return [sa.Column(name, kind, nullable=True) for name in names]


def _refers(name: str, to: str, **options: Any) -> sa.Column[Any]:
    return sa.Column(name, _TEXT, sa.ForeignKey(to), **({"nullable": False} | options))


def _of_trial() -> sa.Column[Any]:
    return sa.Column("trial_id", _TEXT, sa.ForeignKey("trial.trial_id", ondelete="CASCADE"), primary_key=True)


def _number(name: str, default: str) -> sa.Column[Any]:
    return sa.Column(name, _INTEGER, server_default=default, nullable=False)


def _tallied() -> _Columns:
    return [
        *_needed(_INTEGER, "trials", "failed_trials"),
        _number("cancelled_trials", "0"),
        *_optional(_MOMENT, "first_seen_at", "last_seen_at"),
    ]


def _index(table: str, *columns: str, unique: bool = False) -> None:
    op.create_index(op.f(f"ix_{table}_{'_'.join(columns)}"), table, [*columns], unique=unique)


def upgrade() -> None:
    _create_dimensions()
    _create_trials()
    _create_parts_of_trials()
    _create_runs()
    _create_regressions()
    _create_people()
    _create_schedules()
    _create_service()
    _create_running_jobs()


def _create_dimensions() -> None:
    op.create_table(
        "machine",
        *_tallied(),
        *_key("machine_id"),
        *_needed(_TEXT, "name", "device", "device_name"),
        *_optional(_INTEGER, "device_count", "device_memory_bytes"),
        *_optional(_FLOAT, "power_limit_w"),
        *_optional(_TEXT, "cpu_name"),
        *_optional(_INTEGER, "cpu_count", "ram_bytes", "threads"),
    )
    op.create_table(
        "build",
        *_tallied(),
        *_key("build_id"),
        *_optional(_TEXT, "label"),
        *_needed(_TEXT, "torch"),
        *_optional(_TEXT, "torch_git", "torch_variant", "cuda", "driver", "triton", "cudnn", "python", "os"),
        *_optional(_TEXT, "compiler"),
        *_needed(_JSON, "packages"),
    )
    op.create_table("conditions", *_key("conditions_id"), *_needed(_JSON, "settings"))
    op.create_table(
        "workload",
        *_tallied(),
        *_key("workload_id"),
        *_needed(_TEXT, "name", "version"),
        *_needed(_WORD, "task"),
        *_optional(_INTEGER, "batch_size"),
        *_needed(_JSON, "shape"),
        *_needed(_TEXT, "dtype"),
        *_optional(_FLOAT, "items_per_iteration"),
        *_optional(_TEXT, "item", "variant"),
        *_optional(_INTEGER, "ranks"),
    )
    _index("workload", "name")
    _create_strategies()


def _create_strategies() -> None:
    op.create_table(
        "strategy",
        *_tallied(),
        *_key("strategy_id"),
        *_needed(_TEXT, "name"),
        *_needed(_WORD, "kind"),
        *_optional(_TEXT, "backend", "mode"),
        *_optional(_FLAG, "dynamic"),
        *_needed(_FLAG, "fullgraph"),
        *_needed(_TEXT, "scope"),
        *_needed(_WORD, "cache"),
        *_needed(_JSON, "options"),
        sa.Column("regions", _JSON, server_default="{}", nullable=False),
    )
    _index("strategy", "name")
    op.create_table(
        "series",
        *_tallied(),
        *_key("series_id"),
        _refers("machine_id", "machine.machine_id"),
        _refers("workload_id", "workload.workload_id"),
        _refers("strategy_id", "strategy.strategy_id"),
    )
    _index("series", "machine_id", "workload_id", "strategy_id", unique=True)
    _index("series", "strategy_id")
    _index("series", "workload_id")
    op.create_table(
        "run",
        *_tallied(),
        *_key("run_id"),
        *_optional(_TEXT, "suite", "label"),
        *_optional(_MOMENT, "started_at", "ended_at"),
        *_optional(_INTEGER, "planned_trials"),
        *_optional(_WORD, "status"),
        *_optional(_JSON, "advice"),
    )


def _create_trials() -> None:
    op.create_table("trial", *_identity_of_trials(), *_figures_of_trials())
    _index("trial", "series_id", "started_at", "build_id")
    _index("trial", "build_id", "started_at")
    _index("trial", "run_id", "series_id")
    _index("trial", "started_at")
    _index("trial", "code_commit")


def _identity_of_trials() -> _Columns:
    return [
        *_key("trial_id"),
        *_needed(_TEXT, "content_hash"),
        _refers("series_id", "series.series_id"),
        _refers("build_id", "build.build_id"),
        _refers("run_id", "run.run_id"),
        *_needed(_MOMENT, "started_at"),
        *_optional(_MOMENT, "ended_at"),
        *_optional(_TEXT, "suite", "label", "conditions_id"),
        *_needed(_WORD, "source_kind"),
        *_needed(_TEXT, "source_name", "machine_name"),
        *_optional(_TEXT, "device_uuid", "build_label"),
        *_needed(_WORD, "status"),
        *_optional(_WORD, "failure_kind"),
        *_optional(_TEXT, "failure_message", "code_commit", "code_hash"),
        *_optional(_FLAG, "code_dirty"),
        _number("record_version", "1"),
    ]


def _figures_of_trials() -> _Columns:
    return [
        *_optional(_FLOAT, "latency_ns", "latency_p05_ns", "latency_p95_ns", "latency_p99_ns"),
        *_optional(_FLOAT, "latency_sd_ns", "control_latency_ns"),
        *_optional(_INTEGER, "samples", "control_samples"),
        *_optional(_WORD, "timing_method", "control_timing_method"),
        *_optional(_FLOAT, *_TIMES, *(f"control_{name}" for name in _TIMES)),
        *_optional(_FLOAT, "unflushed_ns", "control_unflushed_ns", "energy_per_step_j"),
        *_optional(_INTEGER, "time_to_first_result_ns", "first_call_ns", "until_steady_ns"),
        *_optional(_INTEGER, "calls_until_steady", "process_tree_cpu_ns"),
        *_optional(_INTEGER, "first_call_cpu_ns", "first_call_instructions"),
        *_optional(_INTEGER, "peak_bytes", "peak_reserved_bytes", "peak_with_compile_bytes"),
        *_optional(_INTEGER, "peak_rss_bytes", "control_peak_bytes"),
        *_optional(_INTEGER, "graphs", "ops_captured", "graph_breaks", "recompiles"),
        *_optional(_INTEGER, "compile_threads", "compile_pool_size"),
        *_optional(_WORD, "numerics_status"),
        *_optional(_FLAG, "suspect"),
        *_optional(_FLOAT, "cpu_stall_fraction"),
        *_optional(_INTEGER, "recompile_limit_hit", "cudagraph_launches", "cudagraph_skips"),
        *_optional(_INTEGER, "cache_bypasses"),
        *_optional(_FLOAT, "compiled_share", "compiled_time_share", "gpu_utilization_percent"),
        *_optional(_TEXT, "workload_reason", "strategy_reason"),
        *_optional(_FLOAT, "float32_error", "cache_hit_rate"),
        *_optional(_INTEGER, "compiles_after_ready"),
    ]


def _create_parts_of_trials() -> None:
    op.create_table(
        "trial_detail",
        _of_trial(),
        *_optional(_JSON, "failure", "cold_start", "summary", "memory", "compiler", "numerics"),
        *_optional(_JSON, "device_state", "host_state", "sampling", "profile", "trace", "stream"),
        *_optional(_JSON, "timing", "code"),
    )
    op.create_table(
        "trial_samples",
        _of_trial(),
        *_key("kind"),
        *_needed(_INTEGER, "n"),
        *_needed(_TEXT, "codec"),
        *_needed(sa.LargeBinary(), "data"),
        sqlite_with_rowid=False,
    )


def _create_runs() -> None:
    op.create_table(
        "latest",
        _refers("series_id", "series.series_id", primary_key=True),
        _refers("run_id", "run.run_id"),
        *_needed(_MOMENT, "started_at"),
    )
    op.create_table(
        "run_part",
        _refers("run_id", "run.run_id", primary_key=True),
        _refers("machine_id", "machine.machine_id", primary_key=True),
        _refers("build_id", "build.build_id", primary_key=True),
        *_needed(_INTEGER, "trials"),
        *_needed(_MOMENT, "first_seen_at", "last_seen_at"),
    )
    _index("run_part", "machine_id", "last_seen_at")
    # Its other columns come with its first rows: each release makes the table as it needs it, see
    # `db.columns.metrics`.
    op.create_table(
        "run_case",
        _refers("run_id", "run.run_id", primary_key=True),
        _refers("build_id", "build.build_id", primary_key=True),
        _refers("series_id", "series.series_id", primary_key=True),
        *_key("conditions_id"),
        *_needed(_MOMENT, "last_started_at"),
    )
    _index("run_case", "series_id", "last_started_at")
    op.create_table(
        "data_version",
        sa.Column("id", sa.Integer(), autoincrement=False, primary_key=True),
        *_needed(_INTEGER, "version"),
        _number("run_case_edition", "0"),
    )
    op.execute("INSERT INTO data_version (id, version) VALUES (1, 0)")


def _create_regressions() -> None:
    op.create_table(
        "regression",
        *_key("regression_id"),
        _refers("series_id", "series.series_id"),
        *_needed(_WORD, "metric"),
        *_needed(_TEXT, "base_key", "head_key"),
        *_needed(_INTEGER, "revision"),
        _refers("revises", "regression.regression_id", nullable=True),
        *_needed(_WORD, "verdict"),
        *_needed(_MOMENT, "recorded_at"),
        *_needed(_JSON, "document"),
    )
    _index("regression", "series_id", "metric", "base_key", "head_key", "revision", unique=True)
    _index("regression", "base_key", "head_key")
    _index("regression", "recorded_at")
    _index("regression", "revises")
    op.create_table(
        "triage_event",
        _refers("regression_id", "regression.regression_id", primary_key=True),
        *_key("number", of=_INTEGER),
        *_needed(_WORD, "state"),
        *_needed(_TEXT, "author"),
        *_needed(_MOMENT, "at"),
        *_optional(_TEXT, "note", "url"),
    )
    op.create_table(
        "notification",
        _refers("regression_id", "regression.regression_id", primary_key=True),
        *_key("channel"),
        *_needed(_WORD, "state"),
        *_needed(_INTEGER, "deliveries"),
        *_needed(_MOMENT, "changed_at"),
        *_optional(_TEXT, "problem"),
    )
    _index("notification", "channel", "state")


def _create_people() -> None:
    op.create_table(
        "annotation",
        *_key("annotation_id"),
        *_needed(_TEXT, "text", "author"),
        *_optional(_TEXT, "url"),
        *_needed(_MOMENT, "written_at"),
        *_optional(_MOMENT, "happened_at"),
        _refers("build_id", "build.build_id", nullable=True),
        _refers("machine_id", "machine.machine_id", nullable=True),
        *_optional(_TEXT, "workload"),
    )
    op.create_table(
        "issue_script",
        *_key("issue_id"),
        *_needed(_MOMENT, "made_at"),
        *_optional(_TEXT, "script", "problem"),
        *_needed(_FLAG, "is_private"),
        *_needed(_JSON, "runs"),
    )
    op.create_table(
        "report",
        *_key("report_id"),
        *_needed(_TEXT, "title", "created_by"),
        *_needed(_MOMENT, "created_at"),
        *_needed(_INTEGER, "data_version"),
        *_optional(_MOMENT, "revoked_at"),
        *_optional(_TEXT, "revoked_by"),
        *_optional(_JSON, "content"),
    )
    op.create_table(
        "stored_view",
        *_key("view_id"),
        *_needed(_TEXT, "link"),
        *_needed(_MOMENT, "stored_at"),
        *_optional(_TEXT, "stored_by"),
    )


def _create_schedules() -> None:
    op.create_table(
        "schedule",
        *_key("name"),
        *_needed(_JSON, "spec"),
        *_needed(_FLAG, "from_config", "paused"),
        *_needed(_MOMENT, "active_since"),
        *_optional(_MOMENT, "next_run_at", "changed_at"),
        *_optional(_JSON, "upcoming"),
        *_optional(_TEXT, "changed_by"),
    )
    op.create_table(
        "schedule_watch",
        _refers("schedule", "schedule.name", primary_key=True),
        *_optional(_MOMENT, "last_result_at", "due_at", "told_due_at"),
    )
    op.create_table(
        "run_request",
        *_key("request_id"),
        *_needed(_WORD, "kind", "state"),
        *_needed(_INTEGER, "priority", "attempts", "beat"),
        *_needed(_JSON, "spec", "run_ids", "history"),
        *_needed(_TEXT, "asked_by"),
        *_needed(_MOMENT, "asked_at"),
        *_needed(_FLAG, "cancel_asked"),
        *_optional(_TEXT, "owner"),
    )
    _index("run_request", "state", "priority", "asked_at")
    op.create_table(
        "firing",
        _refers("schedule", "schedule.name", primary_key=True),
        *_key("fire_at", of=_MOMENT),
        *_needed(_TEXT, "owner"),
        *_needed(_MOMENT, "claimed_at"),
        *_needed(_WORD, "outcome"),
        *_needed(_INTEGER, "firings"),
        _refers("request_id", "run_request.request_id", nullable=True),
    )


def _create_service() -> None:
    op.create_table(
        "host",
        *_key("name"),
        *_needed(_TEXT, "owner", "program_version"),
        *_needed(_MOMENT, "started_at", "seen_at"),
        *_optional(_MOMENT, "stopped_at", "devices_read_at"),
        *_optional(_INTEGER, "free_bytes", "total_bytes"),
        *_optional(_JSON, "devices"),
    )
    op.create_table(
        "host_health",
        *_key("host"),
        *_needed(_MOMENT, "seen_at"),
        *_needed(_INTEGER, "spool_trials", "spool_bytes", "database_errors"),
    )
    op.create_table(
        "fleet_worker",
        *_key("owner"),
        *_needed(_TEXT, "queue", "host", "served"),
        *_needed(_MOMENT, "started_at", "seen_at"),
        *_optional(_MOMENT, "stopped_at"),
        *_needed(_INTEGER, "measured"),
    )
    op.create_table(
        "fleet_launch",
        *_key("launch_id"),
        *_needed(_TEXT, "queue", "host", "output"),
        *_needed(_MOMENT, "launched_at", "worker_due_at"),
        *_optional(_MOMENT, "ended_at", "worker_at"),
        *_optional(sa.Integer(), "exit_code"),
        *_optional(_TEXT, "worker"),
    )
    _index("fleet_launch", "queue")
    op.create_table(
        "api_token",
        *_key("token_id"),
        *_needed(_TEXT, "name", "secret_hash", "created_by"),
        *_needed(_JSON, "scopes"),
        *_needed(_MOMENT, "created_at"),
        *_optional(_MOMENT, "expires_at", "revoked_at"),
        *_optional(_TEXT, "revoked_by"),
    )
    _index("api_token", "secret_hash", unique=True)


def _create_running_jobs() -> None:
    op.create_table(
        "job_state",
        *_key("process"),
        *_needed(_TEXT, "job", "host", "launch"),
        *_needed(_INTEGER, "sequence", "steps", "compiles_after_ready", "cost_after_ready_ns"),
        *_needed(_INTEGER, "cache_hits", "cache_misses", "cache_bypasses", "dropped"),
        *_needed(_FLAG, "ready", "ended"),
        *_needed(_JSON, "events"),
        *_needed(_MOMENT, "seen_at"),
        *_optional(_INTEGER, "rank", "compiling_ns", "since_step_ns"),
        *_optional(_TEXT, "compiling"),
        *_optional(_MOMENT, "compiling_since", "stepped_at", "compiled_at", "told_at"),
    )
    _index("job_state", "job")
