"""Tables as spreadsheets and other countries write them: the right number, or one sentence, of every row."""

from __future__ import annotations

from pathlib import Path

import pytest

from compilewatch.db.errors import RecordError
from compilewatch.db.interchange.files.opening import input_files
from compilewatch.db.interchange.files.options import ImportOptions
from compilewatch.db.interchange.formats import Format
from compilewatch.db.interchange.sources import timm_csv
from tests.db.interchange.reading import TOLD, read_told
from tests.db.interchange.tiny_files import DYNAMO_NAME, TIMM_NAME

# Of each format a name, its header and a row with TIME in ms, which becomes the latency.
TABLES = {
    Format.CSV: ("table.csv", "workload,strategy,batch_size,latency_ms", "m,default,8,TIME"),
    Format.DYNAMO_CSV: (
        DYNAMO_NAME.format("performance"),
        "dev,name,batch_size,speedup,abs_latency",
        "cuda,m,8,1,TIME",
    ),
    Format.TIMM_CSV: (
        TIMM_NAME.format(""),
        "model,infer_img_size,infer_samples_per_sec,infer_batch_size,infer_step_time",
        "m,224,8,8,TIME",
    ),
}


@pytest.fixture(params=TABLES, ids=str)
def table(request: pytest.FixtureRequest) -> tuple[str, str, str]:
    return TABLES[request.param]


def latencies(path: Path) -> list[int | None]:
    return [trial.summary and trial.summary.latency_ns for trial in read_told(path, strategy="default")]


def written(folder: Path, table: tuple[str, str, str], *times: str, tail: str = "") -> str:
    """The text of a table with a row for each time, each told apart by its name."""
    _, header, row = table
    rows = [row.replace("m,", f"m{number},").replace("TIME", time) for number, time in enumerate(times)]
    return "".join(f"{line}{tail}\n" for line in (header, *rows))


def saved(folder: Path, table: tuple[str, str, str], data: str | bytes) -> Path:
    path = folder / table[0]
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return path


@pytest.mark.parametrize("separator", [";", "\t"])
@pytest.mark.parametrize(
    ("times", "expected"),
    [
        (("1,5", "0,125"), [1_500_000, 125_000]),
        (("1.5", "1.125"), [1_500_000, 1_125_000]),
        (("1,5", "1,125"), [1_500_000, 1_125_000]),
        (("1,5E-3",), [1_500]),
    ],
)
def test_another_separator_and_a_decimal_comma(
    tmp_path: Path,
    table: tuple[str, str, str],
    separator: str,
    times: tuple[str, ...],
    expected: list[int],
) -> None:
    text = written(tmp_path, table, *("TIME" for _ in times)).replace(",", separator)
    for time in times:
        text = text.replace("TIME", time, 1)
    assert latencies(saved(tmp_path, table, text)) == expected


@pytest.mark.parametrize(
    ("separator", "times"),
    [
        (";", ("1,234", "1.5")),
        (";", ("1,234", "1.234")),
        (";", ("1.234", "1,5")),
        ("\t", ("1,234", "2,345")),
        ("\t", ("1.5", "2,345")),
    ],
)
def test_what_may_be_a_thousand_times_the_number_is_refused(
    tmp_path: Path, table: tuple[str, str, str], separator: str, times: tuple[str, str]
) -> None:
    text = written(tmp_path, table, "TIME", "TIME").replace(",", separator)
    for time in times:
        text = text.replace("TIME", time, 1)
    with pytest.raises(RecordError, match=r"line [23]: [12].[23][34][45]: may be a thousand times") as raised:
        latencies(saved(tmp_path, table, text))
    assert raised.value.next_step.startswith("Write numbers as 1234.5")


@pytest.mark.parametrize(
    "cell",
    ['"1,234.5"', '"1,5"', "1 234.5", "1'234.5", "1_234.5", "12%", "85 %", "<0.1", "#DIV/0!", "TRUE", "0x10"],
)
def test_what_is_no_plain_number_is_refused_with_the_way_to_write_it(
    tmp_path: Path, table: tuple[str, str, str], cell: str
) -> None:
    with pytest.raises(RecordError, match=r"line 3: \w+: must be a number, not") as raised:
        latencies(saved(tmp_path, table, written(tmp_path, table, "1.5", cell)))
    assert raised.value.next_step.startswith("Write numbers as 1234.5")


@pytest.mark.parametrize("cell", ["inf", "-inf", "Infinity", "-1.5", "1e400"])
def test_a_number_that_no_time_is_is_refused(tmp_path: Path, table: tuple[str, str, str], cell: str) -> None:
    with pytest.raises(RecordError, match=r"line 3: "):
        latencies(saved(tmp_path, table, written(tmp_path, table, "1.5", cell)))


@pytest.mark.parametrize("cell", ["", "nan", "NA", "-", "NULL"])
def test_without_a_figure_there_is_none(tmp_path: Path, table: tuple[str, str, str], cell: str) -> None:
    path = saved(tmp_path, table, written(tmp_path, table, "1.5", cell))
    if table == TABLES[Format.DYNAMO_CSV]:
        assert latencies(path) == [1_500_000, None], "as a row of an accuracy file"
        return
    with pytest.raises(RecordError, match=r"line 3: \w+: is missing"):
        latencies(path)


@pytest.mark.parametrize(
    "encoded",
    [
        lambda text: b"\xef\xbb\xbf" + text.encode(),
        lambda text: text.encode("utf-16"),
        lambda text: b"\xfe\xff" + text.encode("utf-16-be"),
        lambda text: text.replace("\n", "\r\n").encode(),
        lambda text: text.encode() + b"\n\n\n",
        lambda text: b"\n\n" + text.encode(),
    ],
    ids=["utf-8 with a mark", "utf-16", "utf-16-be", "crlf", "empty lines behind", "empty lines before"],
)
def test_other_encodings_and_lines(tmp_path: Path, table: tuple[str, str, str], encoded) -> None:  # type: ignore[no-untyped-def]
    assert latencies(saved(tmp_path, table, encoded(written(tmp_path, table, "1.5", "2.5")))) == [
        1_500_000,
        2_500_000,
    ]


@pytest.mark.parametrize(
    ("encoded", "problem", "next_step"),
    [
        (lambda text: text.encode("utf-16-le"), "UTF-16 without its mark", "UTF-8"),
        (
            lambda text: text.replace("m1", "m\u00e9").encode("latin-1"),
            "line 3: the text: is not UTF-8",
            "UTF-8",
        ),
        (lambda text: text.replace("\n", "\r").encode(), "carriage return alone", "line feeds"),
    ],
    ids=["utf-16 without a mark", "latin-1", "carriage returns"],
)
def test_an_encoding_that_is_not_read_is_named(  # type: ignore[no-untyped-def]
    tmp_path: Path, table: tuple[str, str, str], encoded, problem: str, next_step: str
) -> None:
    with pytest.raises(RecordError, match=problem) as raised:
        latencies(saved(tmp_path, table, encoded(written(tmp_path, table, "1.5", "2.5"))))
    assert next_step in raised.value.next_step


@pytest.mark.parametrize("tail", [",", ",,", ",,,"])
def test_empty_columns_at_the_end(tmp_path: Path, table: tuple[str, str, str], tail: str) -> None:
    assert latencies(saved(tmp_path, table, written(tmp_path, table, "1.5", tail=tail))) == [1_500_000]
    ragged = written(tmp_path, table, "1.5").removesuffix("\n") + tail + "\n"
    assert latencies(saved(tmp_path, table, ragged)) == [1_500_000]
    full = written(tmp_path, table, "1.5", tail=",,").removesuffix(",,\n") + ",x,y\n"
    with pytest.raises(RecordError, match="line 2: the row: has"):
        latencies(saved(tmp_path, table, full))


def test_a_name_of_two_columns_is_refused(tmp_path: Path, table: tuple[str, str, str]) -> None:
    last = table[1].rpartition(",")[2]
    text = written(tmp_path, table, "1.5,2.5").replace(last, f"{last},{last}")
    with pytest.raises(RecordError, match=f"line 1: '{last}': is the name of two columns"):
        latencies(saved(tmp_path, table, text))


def test_a_name_may_hold_a_line_break(tmp_path: Path, table: tuple[str, str, str]) -> None:
    text = written(tmp_path, table, "1.5", "2.5").replace("m0", '"m\nn"')
    assert latencies(saved(tmp_path, table, text)) == [1_500_000, 2_500_000]


@pytest.mark.parametrize(
    ("column", "field", "right"),
    [
        ("latency (s)", "latency_ms", "latency_s=latency (s)"),
        ("time [us]", "latency_ms", "latency_us=time [us]"),
        ("time_ns", "latency_s", "latency_ns=time_ns"),
        ("memory (MB)", "peak_gb", "peak_mb=memory (MB)"),
    ],
)
def test_a_unit_in_the_header_outranks_that_of_the_field(
    tmp_path: Path, column: str, field: str, right: str
) -> None:
    path = tmp_path / "table.csv"
    path.write_text(f"workload,latency_ms,{column}\nm,1.5,2.5\n", encoding="utf-8")
    with pytest.raises(RecordError, match="by its name, and") as raised:
        read_told(path, columns={field: column})
    assert right in raised.value.next_step
    own = right.partition("=")[0]
    assert read_told(path, columns={own: column})


def test_rows_that_repeat_another_are_counted(tmp_path: Path) -> None:
    name, header, row = TABLES[Format.TIMM_CSV]
    path = tmp_path / name
    path.write_text("\n".join((header, *(row.replace("TIME", time) for time in ("1.5", "2.5", "3.5")))))
    options = ImportOptions(**TOLD)
    assert len(list(timm_csv.read(*input_files(path), options))) == 1
    assert options.notes == [f"{path}: 2 rows with model, image size and batch of another left out."]
