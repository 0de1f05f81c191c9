"""Hold how much of a step ran compiled, what was refused, and how busy the GPU was."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0027"
down_revision = "0026"

_COUNTS = ("recompile_limit_hit", "cudagraph_launches", "cudagraph_skips", "cache_bypasses")
_SHARES = ("compiled_share", "compiled_time_share", "gpu_utilization_percent")
# What records of before this revision hold: SQLite, then PostgreSQL.
_OF_COMPILER = {
    "recompile_limit_hit": (
        "json_extract(compiler, '$.recompile_limit_hit')",
        "(compiler ->> 'recompile_limit_hit')::boolean::int",
    ),
    "cudagraph_launches": (
        "json_extract(compiler, '$.cudagraph_launches')",
        "(compiler ->> 'cudagraph_launches')::bigint",
    ),
    "cudagraph_skips": (
        "json_array_length(compiler, '$.cudagraph_skips')",
        "json_array_length(compiler -> 'cudagraph_skips')",
    ),
    "cache_bypasses": (
        "json_array_length(compiler, '$.cache_bypasses')",
        "json_array_length(compiler -> 'cache_bypasses')",
    ),
    "gpu_utilization_percent": (
        "json_extract(device_state, '$.utilization_percent')",
        "(device_state ->> 'utilization_percent')::double precision",
    ),
}


def upgrade() -> None:
    for name in _COUNTS:
        op.add_column("trial", sa.Column(name, sa.BigInteger(), nullable=True))
    for name in _SHARES:
        op.add_column("trial", sa.Column(name, sa.Float(), nullable=True))
    dialect = int(op.get_bind().dialect.name == "postgresql")
    for name, found in _OF_COMPILER.items():
        detail = f"(SELECT {found[dialect]} FROM trial_detail AS d WHERE d.trial_id = trial.trial_id)"  # noqa: S608 - words of this file
        op.execute(f"UPDATE trial SET {name} = {detail}")  # noqa: S608 - words of this file
