"""Hold what running jobs say of themselves."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlmodel.sql.sqltypes import UTCDateTime

revision = "0033"
down_revision = "0032"

_NEEDED: dict[str, type[sa.types.TypeEngine[Any]]] = {
    **dict.fromkeys(("process", "job", "host", "launch"), sa.String),
    **dict.fromkeys(("sequence", "steps", "compiles_after_ready", "cost_after_ready_ns"), sa.BigInteger),
    **dict.fromkeys(("cache_hits", "cache_misses", "cache_bypasses", "dropped"), sa.BigInteger),
    **dict.fromkeys(("ready", "ended"), sa.Boolean),
    "events": sa.JSON,
    "seen_at": UTCDateTime,
}
_OPTIONAL: dict[str, type[sa.types.TypeEngine[Any]]] = {
    **dict.fromkeys(("rank", "compiling_ns", "since_step_ns"), sa.BigInteger),
    "compiling": sa.String,
    **dict.fromkeys(("compiling_since", "stepped_at", "compiled_at", "told_at"), UTCDateTime),
}


def upgrade() -> None:
    op.create_table(
        "job_state",
        *(sa.Column(name, kind(), nullable=False) for name, kind in _NEEDED.items()),
        *(sa.Column(name, kind(), nullable=True) for name, kind in _OPTIONAL.items()),
        sa.PrimaryKeyConstraint("process", name="pk_job_state"),
    )
    op.create_index("ix_job_state_job", "job_state", ["job"])
