"""Columns of numbers: one unit a column on a screen, raw numbers with their unit in a file."""

from __future__ import annotations

import csv
import io
from datetime import UTC, datetime

import pandas as pd
import pytest

from compilewatch.dashboard.links.links import Link
from compilewatch.dashboard.parts.column_units import UNITS, form_of, in_form, scale_of, written
from compilewatch.dashboard.parts.parts import Table, TableColumn
from compilewatch.dashboard.render.exporting import ExportOrigin, formats_of
from compilewatch.dashboard.render.streamlit_parts import _on_screen, _writers

FRAME = pd.DataFrame(
    {
        "latency": [2_500_000.0, None, 40_000_000.0],
        "change": [0.5, -0.0135, None],
        "ends": [(1.0, 2.0), "n=2", None],
    }
)
COLUMNS = {
    "latency": TableColumn("Latency", unit="ns"),
    "change": TableColumn("Change", unit="change"),
    "ends": TableColumn("95 % interval", "interval", unit="ratio"),
}


def test_a_screen_has_numbers_in_one_unit_a_column() -> None:
    shown = _on_screen(FRAME, COLUMNS)
    assert shown["latency"].tolist() == pytest.approx([2.5, float("nan"), 40.0], nan_ok=True)
    assert shown["change"].tolist() == pytest.approx([50.0, -1.35, float("nan")], nan_ok=True)
    assert shown["ends"].tolist() == ["1.00x to 2.00x", "n=2", "\N{EN DASH}"]
    assert shown.sort_values("change")["change"].iloc[0] == pytest.approx(-1.35), "as numbers, not as texts"


@pytest.mark.parametrize(
    ("unit", "values", "shown"),
    [
        ("ratio", [1.958, 2.0, 10.3, None], ["1.96", "2.00", "10.30"]),
        ("ns", [9_434_000.0, 10_400_000.0, 900_000.0], ["9.43", "10.40", "0.90"]),
        ("change", [-0.616, 0.059, 0.0], ["-61.6", "+5.9", "+0.0"]),
        ("ns", [250e6, 180e6, 12e6], ["250", "180", "12"]),
        # Two decimals of the middle one would leave nothing of the smallest.
        ("ratio", [0.002, 2.0, 3.0], ["0.002", "2", "3"]),
    ],
)
def test_the_digits_of_a_column_align(unit: str, values: list[float | None], shown: list[str]) -> None:
    column, scale = pd.Series(values), scale_of(UNITS[unit], pd.Series(values))[1]
    form = form_of(UNITS[unit], column)
    assert [form % (value / scale) for value in values if value is not None] == shown


def test_a_grid_has_a_real_minus_and_marks_between_thousands_and_sorts_by_the_number() -> None:
    shown = _on_screen(FRAME, COLUMNS)
    writers = _writers(FRAME, COLUMNS, shown)
    assert {name: list(map(write, shown[name].dropna())) for name, write in writers.items()} == {
        "change": ["+50.0", "\N{MINUS SIGN}1.3"]
    }
    assert in_form("%.0f", 24_565.4) == "24,565"
    assert in_form("%+.1f", 0.0) == "0.0"
    assert in_form("%.3g", -0.00123) == "\N{MINUS SIGN}0.00123"
    assert in_form("%+.3g", 28_900.0) == "+28,900"
    long = pd.concat([FRAME] * 400, ignore_index=True)
    assert _writers(long, COLUMNS, _on_screen(long, COLUMNS)) == {}


def test_a_file_has_raw_numbers_with_their_unit_in_the_header() -> None:
    table = Table("t", "a table", FRAME, COLUMNS)
    origin = ExportOrigin(Link(), "Overview.", "http://localhost/", 1)
    text = formats_of(table)["CSV"].make(table, origin, datetime(2026, 11, 20, tzinfo=UTC)).decode()
    header, *rows = csv.reader(io.StringIO(text, newline=""))
    assert header == [
        "Latency (ns)",
        "Change (fraction)",
        "95 % interval, low (x)",
        "95 % interval, high (x)",
    ]
    assert rows[0] == ["2500000.0", "0.5", "1.0", "2.0"]
    assert rows[1] == ["", "-0.0135", "", ""]


def test_a_word_stands_where_there_is_no_number() -> None:
    assert written("never", UNITS["steps"]) == "never"
    assert written(None, UNITS["ns"]) == "\N{EN DASH}"
    assert scale_of(UNITS["ns"], pd.Series([None, "word"]))[0] == "", "nothing to have a unit"
    assert scale_of(UNITS["change"], pd.Series([0.0]))[0] == "%"
