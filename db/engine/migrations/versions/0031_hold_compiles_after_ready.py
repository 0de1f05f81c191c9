"""Hold what a job compiled after it was ready, and the share of graphs that caches had."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0031"
down_revision = "0030"

_DETAIL = "FROM trial_detail AS d WHERE d.trial_id = trial.trial_id"
# What records of before this revision hold, by path: SQLite, then PostgreSQL.
_READ = ("json_extract(compiler, '$.{path}')", "(compiler #>> '{{{keys}}}')::bigint")
_FOUND = ("cache.fx_graph_hits", "cache.aot_autograd_hits")
_LEFT = ("cache.fx_graph_misses", "cache.fx_graph_bypasses")


def upgrade() -> None:
    op.add_column("trial", sa.Column("cache_hit_rate", sa.Float(), nullable=True))
    op.add_column("trial", sa.Column("compiles_after_ready", sa.BigInteger(), nullable=True))
    read = _READ[op.get_bind().dialect.name == "postgresql"]

    def at(path: str) -> str:
        return read.format(path=path, keys=path.replace(".", ","))

    found, left = (" + ".join(f"coalesce({at(path)}, 0)" for path in paths) for paths in (_FOUND, _LEFT))
    for name, value in (
        ("compiles_after_ready", at("after_ready.count")),
        ("cache_hit_rate", f"1.0 * ({found}) / nullif({found} + {left}, 0)"),
    ):
        op.execute(f"UPDATE trial SET {name} = (SELECT {value} {_DETAIL})")  # noqa: S608 - words of this file
