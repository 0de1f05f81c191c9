"""What trials of a run come to, case by case and build by build, so that no page sums them up."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import create_model
from sqlalchemy import BigInteger, Index, Table
from sqlmodel import Field

from compilewatch.db.columns.point import POINT_KEYS, STORED_POINT
from compilewatch.db.tables.metadata import METADATA, Row

_TYPES: dict[str, type] = {
    **{"str": str, "Int64": int, "Float64": float, "bool": bool, "datetime64[us, UTC]": datetime},
}
_ALWAYS_THERE = ("bool", "datetime64[us, UTC]")


def _field(name: str, dtype: str) -> tuple[Any, Any]:
    options: dict[str, Any] = {"sa_type": BigInteger} if dtype == "Int64" else {}
    if name in POINT_KEYS:
        # Of a record without settings the conditions are an empty text, and no row of their own.
        if name != "conditions_id":
            options["foreign_key"] = f"{name.removesuffix('_id')}.{name}"
        return str, Field(primary_key=True, **options)
    kind = _TYPES[dtype]
    return (kind if dtype in _ALWAYS_THERE else kind | None), Field(**options)


_OF_POINT: dict[str, Any] = {name: _field(name, dtype) for name, dtype in STORED_POINT.items()}
RunCaseRow = create_model(
    "RunCaseRow",
    __base__=Row,
    __module__=__name__,
    __doc__="One row per run, build, series and conditions, as `db.metrics.trend.run_points` gives it.",
    __cls_kwargs__={"table": True},
    **_OF_POINT,
)
RUN_CASE: Table = METADATA.tables["run_case"]
# The history of a series, and its newest part.
Index(None, RUN_CASE.c.series_id, RUN_CASE.c.last_started_at)


class RunPartRow(Row, table=True):
    """The trials that a run, a machine and a build have in common, so that no page groups over all trials to
    find which builds a machine measured, and when. Almost every run has one row.
    """

    __table_args__ = (Index(None, "machine_id", "last_seen_at"),)

    run_id: str = Field(primary_key=True, foreign_key="run.run_id")
    machine_id: str = Field(primary_key=True, foreign_key="machine.machine_id")
    build_id: str = Field(primary_key=True, foreign_key="build.build_id")
    trials: int = Field(sa_type=BigInteger)
    first_seen_at: datetime
    last_seen_at: datetime


RUN_PART: Table = METADATA.tables["run_part"]
