"""Frames as browsers get them: made once, and of the frame that is there now."""

from __future__ import annotations

import gc
import weakref
from datetime import UTC, datetime

import pandas as pd
import pyarrow as pa
import pytest
from streamlit.dataframe_util import convert_anything_to_arrow_bytes

from dashboard.render.elements import CHART_ROWS, TABLE_ROWS, OfFrames
from db.queries.frames import MOMENT

FRAME = pd.DataFrame(
    {
        "workload": pd.Series(["mlp", None, "a\u202eb"], dtype="str"),
        "value": pd.Series([1.0, None, 3.0], dtype="Float64"),
        "trials": pd.Series([1, None, 3], dtype="Int64"),
        "at": pd.Series([datetime(2026, 11, 2, tzinfo=UTC), None, None], dtype=MOMENT),
        "history": [[1.0, 2.0], None, []],
    }
)


@pytest.mark.parametrize("frame", [FRAME, FRAME.iloc[::-1], FRAME.iloc[:0]], ids=["all", "turned", "none"])
def test_a_table_gets_what_streamlit_would_make_of_its_columns(frame: pd.DataFrame) -> None:
    columns = ("trials", "workload", "at", "history")
    found = TABLE_ROWS.of(frame, columns)
    assert isinstance(found, pa.Table)
    assert convert_anything_to_arrow_bytes(found) == convert_anything_to_arrow_bytes(frame[list(columns)])


def test_texts_of_a_chart_are_readable() -> None:
    rows = CHART_ROWS.of(FRAME.drop(columns="history"))
    assert rows["workload"].to_pylist() == ["mlp", None, "a\ufffdb"]
    assert rows["value"].to_pylist() == [1.0, None, 3.0]


def test_what_arrow_has_no_column_for_is_left_to_streamlit() -> None:
    mixed = pd.DataFrame({"value": pd.Series(["mlp", 1, b"x"], dtype=object)})
    assert TABLE_ROWS.of(mixed, ("value",)).equals(mixed)
    huge = pd.DataFrame({"value": pd.Series([2**70], dtype=object)})
    assert CHART_ROWS.of(huge).equals(huge)


def test_each_frame_is_made_once_for_all_that_is_beside_it() -> None:
    made: list[tuple[int, str]] = []

    def make(frame: pd.DataFrame, name: str) -> str:
        made.append((len(frame), name))
        return name

    of_frames = OfFrames(make)
    frame, equal = FRAME.copy(), FRAME.copy()
    for _ in range(2):
        found = [of_frames.of(frame, "a"), of_frames.of(frame, "b"), of_frames.of(equal, "a")]
        assert found == ["a", "b", "a"]
    assert made == [(3, "a"), (3, "b"), (3, "a")]


def test_frames_without_rows_are_one_where_their_columns_are_alike() -> None:
    made: list[str] = []
    of_frames = OfFrames(lambda frame: made.extend(map(str, frame.dtypes)))
    for frame in (FRAME[["value"]], FRAME[["value"]].astype("Int64"), FRAME[["trials"]]):
        for _ in range(2):
            of_frames.of(frame.iloc[:0].copy())
    assert made == ["Float64", "Int64", "Int64"]


class Made:
    """What was made of a frame; `ALIVE` counts those that something still holds."""

    def __init__(self, frame: pd.DataFrame) -> None:
        self.columns = list(frame.columns)
        ALIVE.add(self)


ALIVE: weakref.WeakSet[Made] = weakref.WeakSet()


def test_memory_of_frames_is_bounded() -> None:
    of_frames, of_rows = OfFrames(Made), OfFrames(Made)
    for number in range(300):
        column = f"column-{number}"
        assert of_frames.of(pd.DataFrame({column: []})).columns == [column]
    for rows in range(1, 50):
        of_rows.of(pd.DataFrame({"value": range(rows)}))
    gc.collect()
    assert len(ALIVE) <= 100
    assert ["value"] not in [made.columns for made in ALIVE], "with their frames they go"
