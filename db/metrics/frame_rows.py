"""The rows of a frame as plain values."""

from __future__ import annotations

from typing import Any

from pandas import DataFrame


def row_dicts(frame: DataFrame) -> list[dict[str, Any]]:
    """The rows of `frame`, each as column -> value."""
    # Column by column: `to_dict("records")` takes ten times as long on the nullable types of these frames.
    columns = {str(name): column.tolist() for name, column in frame.items()}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
