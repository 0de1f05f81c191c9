"""Frames as rows of JSON values."""

from __future__ import annotations

import math
from datetime import datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pandas import DataFrame


def rows_of(frame: DataFrame) -> list[dict[str, Any]]:
    """The rows of `frame` as JSON values: what is missing is null, times are RFC 3339 in UTC."""
    return [{str(name): plain(value) for name, value in row.items()} for row in frame.to_dict("records")]


def plain(value: Any) -> Any:
    """One value of a frame as JSON."""
    if value is None or isinstance(value, dict | list | str | bool):
        return value
    # It takes a while to import, and documents without a frame do without it.
    import pandas as pd

    if pd.isna(value):
        return None
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    number = value.item() if hasattr(value, "item") else value
    return None if isinstance(number, float) and not math.isfinite(number) else number
