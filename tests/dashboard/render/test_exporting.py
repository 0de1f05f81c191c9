"""Exports: what is seen, in formats that programs read, and nothing in it that a program would run."""

from __future__ import annotations

import csv
import io
import json
from datetime import UTC, datetime

import pandas as pd
import pytest

from compilewatch.dashboard.charts.style import ChartContent
from compilewatch.dashboard.links.links import Link, Page
from compilewatch.dashboard.parts import speedups
from compilewatch.dashboard.parts.column_units import SidesCell, quantity
from compilewatch.dashboard.parts.parts import Chart, Table, TableColumn, quantities, texts
from compilewatch.dashboard.render.exporting import ExportOrigin, file_name, formats_of
from compilewatch.db import units

AT = datetime(2026, 11, 20, 20, 0, tzinfo=UTC)
ORIGIN = ExportOrigin(
    link=Link(page=Page.WORKLOAD, workload=("bert base",), metric="compile_cost", machine="0123456789abcdef"),
    sentence="Compile cost over time of bert base.",
    permalink="http://127.0.0.1:8501/trends?metric=compile_cost&note=a)b",
    data_version=42,
)
TABLE = Table(
    key="trend-table",
    alt="Latency of every case",
    frame=pd.DataFrame(
        {
            "workload": ["mlp", '=HYPERLINK("http://evil")', "a|b\n<img src=x> [x](http://evil) *b*"],
            "change": ["-3.20 %", "+1,200 ms", units.MISSING],
            "history": [[1.0, 2.0], [], [float("nan")]],
            "last": pd.to_datetime(["2026-11-20T18:00Z", None, "2026-11-20T18:00Z"]),
            "runs": pd.array([3, None, 5], dtype="Int64"),
            "hidden": ["no", "no", "no"],
        }
    ),
    columns=texts(
        {"workload": "Workload", "change": "Change", "history": "History", "last": "Last", "runs": "Runs"}
    ),
)


def made(table: Table, name: str) -> str:
    return formats_of(table)[name].make(table, ORIGIN, AT).decode()


def test_csv_has_what_is_seen_and_no_formula() -> None:
    rows = list(csv.DictReader(io.StringIO(made(TABLE, "CSV"), newline="")))
    assert list(rows[0]) == ["Workload", "Change", "History", "Last", "Runs"]
    assert rows[0] == {
        "Workload": "mlp",
        "Change": "-3.20 %",
        "History": "[1.0, 2.0]",
        "Last": "2026-11-20T18:00:00+00:00",
        "Runs": "3",
    }
    assert rows[1]["Workload"] == '\'=HYPERLINK("http://evil")'
    assert (rows[1]["Change"], rows[1]["Last"], rows[1]["Runs"]) == ("+1,200 ms", "", "")
    assert rows[2]["Workload"] == TABLE.frame["workload"][2]


@pytest.mark.parametrize("name", ["+1+cmd|' /C calc'!A0", "-2+3", "@SUM(1)", "=1", "\t=1", "-2/A1$", "＝1"])  # noqa: RUF001
def test_every_way_to_begin_a_formula_is_marked(name: str) -> None:
    table = Table("t", "Names", pd.DataFrame({"name": [name]}), texts({"name": name}))
    header, row = csv.reader(io.StringIO(made(table, "CSV"), newline=""))
    assert (header, row) == ([f"'{name}"], [f"'{name}"])


@pytest.mark.parametrize("number", ["-3.20 %", "+1,200 ms", "-0.5x", "-12", "+3 GiB"])
def test_what_is_plainly_a_number_keeps_its_sign(number: str) -> None:
    table = Table("t", "Changes", pd.DataFrame({"change": [number]}), texts({"change": "Change"}))
    assert made(table, "CSV").splitlines()[1].strip('"') == number


def test_json_keeps_numbers_and_says_where_it_comes_from() -> None:
    document = json.loads(made(TABLE, "JSON"))
    assert document["schema"] == "compilewatch.table/1"
    assert (document["data_version"], document["view"]) == (42, ORIGIN.sentence)
    assert document["link"] == ORIGIN.permalink
    assert document["rows"][0]["runs"] == 3
    assert document["rows"][1] == {
        "workload": '=HYPERLINK("http://evil")',
        "change": "+1,200 ms",
        "history": [],
        "last": None,
        "runs": None,
    }
    assert document["rows"][2]["history"] == [None]
    assert document["rows"][2]["change"] is None


def test_a_file_has_raw_numbers_and_says_their_units() -> None:
    """Also where two numbers share a cell, or each row has a unit of its own."""
    frame = pd.DataFrame(
        {
            "latency": [1_234_567.0, None],
            "change": [0.0123, None],
            "interval": [(-0.01, 0.03), "n=2"],
            "trials": [SidesCell(3, 4), SidesCell(1, 1)],
            "base": [quantity("latency", 7e6), quantity("numerics", "pass")],
        }
    )
    columns = {
        **quantities("ns", {"latency": "Latency"}),
        **quantities("change", {"change": "Change"}),
        "interval": TableColumn("Interval", "interval", unit="change"),
        "trials": TableColumn("n", "sides", unit="count"),
        "base": TableColumn("Base", "quantity"),
    }
    table = Table("t", "Raw", frame, columns)
    first, second = csv.DictReader(io.StringIO(made(table, "CSV"), newline=""))
    assert first == {
        **{"Latency (ns)": "1234567.0", "Change (fraction)": "0.0123"},
        **{"Interval, low (fraction)": "-0.01", "Interval, high (fraction)": "0.03"},
        **{"n, base": "3", "n, head": "4", "Base": "7000000.0", "Base, unit": "ns"},
    }
    assert (second["Latency (ns)"], second["Interval, low (fraction)"], second["Base"]) == ("", "", "pass")
    assert json.loads(made(table, "JSON"))["rows"][0] == {
        **{"latency": 1234567.0, "change": 0.0123, "interval": [-0.01, 0.03]},
        **{"trials": [3, 4], "base": 7e6, "base_unit": "ns"},
    }
    assert (
        made(table, "Markdown").splitlines()[-2]
        == "| 1.23 ms | +1.23 % | \N{MINUS SIGN}1.00 % to +3.00 % | 3 + 4 | 7.00 ms |"
    )


def test_markdown_is_one_table_without_markup_of_its_cells() -> None:
    text = made(TABLE, "Markdown")
    lines = text.splitlines()
    assert lines[0] == "**Latency of every case**"
    assert "Data version 42, exported 2026-11-20 20:00 UTC" in lines[2]
    assert "(http://127.0.0.1:8501/trends?metric=compile_cost&note=a%29b)" in lines[2]
    table = lines[4:]
    assert table[0] == "| Workload | Change | Last | Runs |"
    assert len(table) == 5
    assert table[4].startswith("| a\\|b \\<img src=x\\> \\[x\\](http:\u200b//evil) \\*b\\* |")


def test_the_name_of_a_file_says_filters_and_version() -> None:
    assert file_name(TABLE, ORIGIN, "csv") == "compilewatch_trend-table_bert-base_compile_cost_v42.csv"
    hostile = ExportOrigin(
        Link(page=Page.WORKLOAD, workload=("../../etc/passwd\x00" + "x" * 300,)), "", "", 1
    )
    name = file_name(TABLE, hostile, "csv")
    assert "/" not in name
    assert len(name) < 140


@pytest.mark.parametrize(("name", "begins"), [("PNG", b"\x89PNG"), ("SVG", b"<svg"), ("PDF", b"%PDF")])
def test_a_chart_is_drawn_with_its_title(name: str, begins: bytes) -> None:
    rows = pd.DataFrame(
        {
            "workload": ["mlp"],
            "strategy": ["default"],
            "speedup": [1.5],
            "low": [1.4],
            "high": [1.6],
        }
    )
    chart = Chart(
        "models-speedups",
        "Speedup <b>over</b> eager",
        ChartContent(
            "mlp is faster",
            speedups.spec(("mlp",), ("default",)),
            {"main": rows, "eager": pd.DataFrame({"speedup": [1.0]})},
        ),
    )
    content = formats_of(chart)[name].make(chart, ORIGIN, AT)
    assert content.startswith(begins)
    if name == "SVG":
        assert b"Speedup &lt;b>over" in content or b"Speedup &lt;b&gt;over" in content
        assert b"Data version 42" in content
