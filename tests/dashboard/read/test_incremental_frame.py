"""Rows that are kept are those that were made, stay while somebody asks for them, and then go."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dashboard.read import incremental_frame
from dashboard.read.incremental_frame import IncrementalFrame

ROWS = 3
Stamps = Mapping[int, int]


class Made:
    """Makes `ROWS` rows for each key, and notes which keys were asked for."""

    def __init__(self) -> None:
        self.shelf: IncrementalFrame[int] = IncrementalFrame(["key", "row"])
        self.asked: list[list[int]] = []

    def look(self, wanted: Stamps) -> pd.DataFrame:
        def make(changed: Sequence[int]) -> tuple[pd.DataFrame, Sequence[int]]:
            self.asked.append(list(changed))
            frame = rows_of({key: wanted[key] for key in changed})
            return frame, frame["key"].tolist()

        return self.shelf.take(wanted, make)


def rows_of(wanted: Stamps) -> pd.DataFrame:
    rows = [(key, row, stamp) for key, stamp in sorted(wanted.items()) for row in range(ROWS)]
    return pd.DataFrame(rows, columns=["key", "row", "stamp"]).astype("int64")


def test_rows_that_nobody_asks_for_any_more_go_and_are_made_again_when_asked_for() -> None:
    made = Made()
    made.look({0: 0, 1: 0})
    for _ in range(incremental_frame.IDLE_READS):
        made.look({1: 0})
    assert made.asked == [[0, 1]]
    pd.testing.assert_frame_equal(made.look({0: 0, 1: 0}), rows_of({0: 0, 1: 0}))
    assert made.asked == [[0, 1], [0]]


def test_rows_that_are_asked_for_by_turns_stay() -> None:
    made = Made()
    for _ in range(incremental_frame.IDLE_READS):
        made.look({0: 0})
        made.look({1: 0})
    assert made.asked == [[0], [1]]


def test_newest_runs_take_the_place_of_those_before_them() -> None:
    made, newest = Made(), 10
    for number in range(20 * incremental_frame.IDLE_READS):
        made.look(dict.fromkeys(range(number, number + newest), 0))
    kept = made.shelf._frame
    assert kept is not None
    assert len(kept) <= ROWS * (newest + incremental_frame.IDLE_READS) * 1.2


@given(
    looks=st.lists(
        st.dictionaries(st.integers(0, 6), st.integers(0, 2), min_size=1), min_size=1, max_size=40
    ),
    spare=st.integers(1, 4),
)
def test_every_look_shows_what_a_first_look_would(looks: list[dict[int, int]], spare: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(incremental_frame, "IDLE_READS", spare)
        made = Made()
        for wanted in looks:
            pd.testing.assert_frame_equal(made.look(wanted), rows_of(wanted))


def test_text_that_comes_row_by_row_lies_in_few_pieces() -> None:
    texts: IncrementalFrame[int] = IncrementalFrame(["key"])

    def make(changed: Sequence[int]) -> tuple[pd.DataFrame, Sequence[int]]:
        return pd.DataFrame({"key": changed, "text": [f"text {key}" for key in changed]}), list(changed)

    looks = 2 * incremental_frame.MOST_PIECES + 1
    for newest in range(looks):
        found = texts.take(dict.fromkeys(range(newest + 1), 1), make)
    assert found["text"].tolist() == [f"text {key}" for key in range(looks)]
    assert pa.Table.from_pandas(found).column("text").num_chunks <= incremental_frame.MOST_PIECES
