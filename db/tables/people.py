"""The tables of regressions: what was recorded, what people said of it, and whom it was told."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, BigInteger, Index, Table
from sqlmodel import Field

from compilewatch.db.records.people.triage import NotificationState, TriageState
from compilewatch.db.records.vocabulary import Metric, Verdict
from compilewatch.db.tables.metadata import METADATA, Row, by_value


class RegressionRow(Row, table=True):
    """A verdict that stood when it was recorded, frozen in `document`; never changed, only revised.

    `base_key` and `head_key` say what was compared (`db.judge.compare.recorded_regressions.side_keys`). A
    verdict that replaces another has the next `revision` and names the old one in `revises`.
    """

    __table_args__ = (
        Index(None, "series_id", "metric", "base_key", "head_key", "revision", unique=True),
        Index(None, "base_key", "head_key"),
        Index(None, "recorded_at"),
        Index(None, "revises"),
    )

    regression_id: str = Field(primary_key=True)
    series_id: str = Field(foreign_key="series.series_id")
    metric: Metric = Field(sa_type=by_value(Metric))
    base_key: str
    head_key: str
    revision: int = Field(sa_type=BigInteger)
    revises: str | None = Field(foreign_key="regression.regression_id")
    verdict: Verdict = Field(sa_type=by_value(Verdict))
    recorded_at: datetime
    document: dict[str, Any] = Field(sa_type=JSON)


class TriageEventRow(Row, table=True):
    """Who said what about a regression, and when. The highest `number` is its state; none means new."""

    regression_id: str = Field(primary_key=True, foreign_key="regression.regression_id")
    number: int = Field(primary_key=True, sa_type=BigInteger, sa_column_kwargs={"autoincrement": False})
    state: TriageState = Field(sa_type=by_value(TriageState))
    author: str
    at: datetime
    note: str | None
    url: str | None


class NotificationRow(Row, table=True):
    """That a regression is to be told, or was, on one channel; addresses are not stored."""

    __table_args__ = (Index(None, "channel", "state"),)

    regression_id: str = Field(primary_key=True, foreign_key="regression.regression_id")
    channel: str = Field(primary_key=True)
    state: NotificationState = Field(sa_type=by_value(NotificationState))
    deliveries: int = Field(sa_type=BigInteger)
    changed_at: datetime
    problem: str | None


REGRESSION: Table = METADATA.tables["regression"]
TRIAGE_EVENT: Table = METADATA.tables["triage_event"]
NOTIFICATION: Table = METADATA.tables["notification"]
