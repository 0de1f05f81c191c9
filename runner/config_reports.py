"""The configuration of frozen reports."""

from __future__ import annotations

from pydantic import Field

from runner.config_types import Positive, Section


class ReportSettings(Section):
    """`[report]`: what becomes of frozen reports."""

    keep_days: Positive | None = Field(
        default=None, description="older reports lose their content, as if revoked; unset: kept for ever"
    )
