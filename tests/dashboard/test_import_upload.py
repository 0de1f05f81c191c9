"""Uploading result files: looked at before they are stored, asked for what they do not say, editors only."""

from __future__ import annotations

import gzip
import io
import zipfile
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from dashboard import access, uploading
from dashboard.access import Person, Role
from dashboard.links import Link, Page
from dashboard.uploading import LARGEST_MB, Upload, files_of, options_of, preview
from db.errors import CompilewatchError
from db.interchange.formats import Format
from db.queries.filters import Filters
from db.queries.trials import trial_records, trials_frame
from db.session import open_database
from tests.builders import make_trial
from tests.dashboard.conftest import DATABASE, opened, texts
from tests.db.interchange.tiny_files import TINY

HOSTILE = "../../![x](http://evil.example/a.png) *b* <script>.jsonl"
TABLE = TINY[Format.CSV]["table.csv"].encode()
TOLD = {
    "torch": "2.13.0",
    "device": "cuda",
    "device_name": "NVIDIA H200",
    "measured_at": "2026-11-20 18:00",
    "dtype": "float16",
    "task": "inference",
}


@pytest.fixture
def url(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv(DATABASE, sqlite_url)
    return sqlite_url


def stored(url: str) -> int:
    with open_database(url, read_only=True) as database:
        return len(trials_frame(database))


def page() -> AppTest:
    return opened(Link(page=Page.RUNS))


def looked_at(test: AppTest, *files: tuple[str, bytes], **told: str) -> AppTest:
    if files:
        test.file_uploader[0].set_value([(name, data, "application/octet-stream") for name, data in files])
    for name, text in told.items():
        test.text_input(f"import-{name}").set_value(text)
    return next(b for b in test.button if b.label == "Look at them").click().run()


def lines(*names: str) -> bytes:
    return "".join(make_trial(trial_id=name).to_json() + "\n" for name in names).encode()


def test_a_file_is_shown_first_and_stored_once_that_is_confirmed(url: str) -> None:
    test = looked_at(page(), ("history.jsonl", lines("one", "two")))
    assert not test.exception
    assert "Would bring in 2 new trials" in texts(test)
    rows = next(e.value for e in test.dataframe if "latency_ms" in e.value.columns)
    assert list(rows["workload"]) == ["bert-base", "bert-base"]
    assert stored(url) == 0, "looked at, so not stored yet"
    test = test.button("import-yes").click().run()
    assert not test.exception
    assert "Brought in 2 new trials." in test.success[0].value
    assert stored(url) == 2
    assert not test.file_uploader[0].value, "the uploader lets its files go"
    again = looked_at(test, ("renamed.jsonl", lines("one", "two")))
    assert "2 trials known already" in texts(again)
    assert again.button("import-yes").disabled


def test_cancelling_stores_nothing(url: str) -> None:
    test = looked_at(page(), ("history.jsonl", lines("one")))
    test = test.button("import-no").click().run()
    assert not test.dataframe or "latency_ms" not in test.dataframe[0].value.columns
    assert stored(url) == 0


def test_what_a_file_does_not_say_is_asked_for(url: str) -> None:
    test = page()
    assert [field.label for field in test.text_input if field.key.startswith("import-")] == [
        "Name of the machine",
        "Name of the build",
    ]
    test = looked_at(test, ("table.csv", TABLE))
    said = texts(test)
    assert "table.csv: does not say the torch version, the kind of device, the GPU (or CPU)" in said
    assert "--torch" not in said, "a page has fields, not options"
    test = looked_at(test, **TOLD)
    assert "Would bring in 2 new trials" in texts(test)
    test.button("import-yes").click().run()
    with open_database(url, read_only=True) as database:
        frame = trials_frame(database)
    assert set(frame["device_name"]) == {"NVIDIA H200"}
    assert set(frame["torch"]) == {"2.13.0"}


def test_whether_it_was_compiled_is_asked_of_a_timm_file_under_another_name(url: str) -> None:
    table = b"model,infer_step_time,infer_batch_size\nresnet50,127.5,1024\n"
    test = looked_at(page(), ("mine.csv", table))
    assert "and whether it was compiled." in texts(test)
    test = looked_at(test, **TOLD, strategy="quickly")
    assert "There is no strategy quickly" in texts(test)
    test = looked_at(test, **TOLD, strategy="reduce-overhead")
    assert "Would bring in 1 new trial" in texts(test)
    rows = next(e.value for e in test.dataframe if "latency_ms" in e.value.columns)
    assert list(rows["strategy"]) == ["reduce-overhead"]


FOREIGN = b"""model,mode,compiled (ms),eager (ms),mem,note
bert,reduce-overhead,8.5,12.25,1.5,first
t5,default,4,6,2,
"""
MEANT = {
    "model": "workload",
    "mode": "strategy",
    "compiled (ms)": "latency_ms",
    "eager (ms)": "eager_latency_ms",
}


def columns_asked(test: AppTest) -> dict[str, Any]:
    """By column; labels are escaped Markdown."""
    boxes = (box for box in test.selectbox if str(box.key).startswith("import-column-"))
    return {box.label.replace("\\", ""): box for box in boxes}


def test_columns_of_a_foreign_csv_are_mapped_on_the_page(url: str) -> None:
    test = looked_at(page(), ("results.csv", FOREIGN))
    assert "no column is mapped to workload and to a latency" in texts(test)
    assert "--column" not in texts(test), "a page has fields, not options"
    assert set(columns_asked(test)) == {"model", "mode", "compiled (ms)", "eager (ms)", "mem", "note"}
    assert columns_asked(test)["mem"].help.replace("\\", "") == "First cell: 1.5"
    for column, meaning in (MEANT | {"mem": "metric.mem"}).items():
        columns_asked(test)[column].set_value(meaning)
    test = looked_at(test)
    assert "does not say the torch version" in texts(test), "the mapping fits; the facts are asked for next"
    test = looked_at(test, **TOLD)
    assert not test.exception
    assert "Would bring in 2 new trials" in texts(test)
    rows = next(e.value for e in test.dataframe if "latency_ms" in e.value.columns)
    assert list(rows["latency_ms"]) == [8.5, 4.0]
    assert stored(url) == 0
    test = test.button("import-yes").click().run()
    assert not columns_asked(test), "the next files have columns of their own"
    with open_database(url, read_only=True) as database:
        frame = trials_frame(database).set_index("workload").sort_index()
        (bert,) = (trial for trial in trial_records(database, Filters()) if trial.workload.name == "bert")
    assert list(frame.index) == ["bert", "t5"]
    assert list(frame["latency_ns"]) == [8_500_000, 4_000_000]
    assert list(frame["control_latency_ns"]) == [12_250_000, 6_000_000]
    assert list(frame["strategy"]) == ["reduce-overhead", "default"]
    assert bert.summary is not None
    assert bert.summary.metrics == {"mem": 1.5}


def test_a_column_that_has_the_name_of_a_field_is_that_field_unless_it_is_said_otherwise(url: str) -> None:
    test = looked_at(page(), ("results.csv", b"workload,time\nbert,8.5\n"))
    assert {label: box.value for label, box in columns_asked(test).items()} == {
        "workload": "workload",
        "time": "",
    }


@pytest.mark.parametrize(
    ("meant", "says"),
    [
        ({"eager (ms)": "latency_ms"}, "Two columns mean latency_ms: compiled (ms) and eager (ms)"),
        ({"note": "peak_gb"}, "results.csv, line 2: peak_gb"),
    ],
)
def test_columns_mapped_wrongly_are_said(url: str, meant: dict[str, str], says: str) -> None:
    test = looked_at(page(), ("results.csv", FOREIGN))
    for column, meaning in (MEANT | meant).items():
        columns_asked(test)[column].set_value(meaning)
    test = looked_at(test)
    assert not test.exception
    assert says in texts(test)
    assert stored(url) == 0


def test_a_table_of_too_many_columns_is_not_asked_about(url: str) -> None:
    header = ",".join(f"c{number}" for number in range(61))
    test = looked_at(page(), ("wide.csv", f"{header}\n{header}\n".encode()))
    assert not columns_asked(test)
    assert "Leave at most 60 columns in it" in texts(test)


@pytest.mark.parametrize(
    ("told", "says"),
    [
        ({"measured_at": "yesterday"}, "yesterday is no date and time"),
        ({"measured_at": "2526-11-20"}, "cannot have been measured on 2526-11-20"),
        ({"task": "juggling"}, "There is no task juggling"),
        ({"device": "cuda, hip or cpu"}, "There is no device cuda, hip or cpu"),
    ],
)
def test_what_is_typed_wrongly_is_said(url: str, told: dict[str, str], says: str) -> None:
    test = looked_at(page(), ("table.csv", TABLE))
    test = looked_at(test, **(TOLD | told))
    assert says in texts(test)
    assert stored(url) == 0


def test_an_error_names_file_line_and_field_and_nothing_comes_in(url: str) -> None:
    damaged = lines("one", "two").replace(b'"calls_until_steady":', b'"calls_until_steady":"x","y":', 2)
    whole, broken = ("good.jsonl", lines("three")), ("bad.jsonl", damaged)
    test = looked_at(page(), whole, broken)
    assert "bad.jsonl, line 1: cold_start.calls_until_steady" in texts(test)
    assert "Would bring in 1 new trial" in texts(test)
    test = test.button("import-yes").click().run()
    assert "bad.jsonl, line 1" in test.warning[0].value.replace("\\", "")
    assert stored(url) == 1


def test_a_viewer_is_offered_nothing_and_can_store_nothing(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    test = looked_at(page(), ("history.jsonl", lines("one")))
    monkeypatch.setattr(access._Door, "identify", lambda _headers: Person("Eve", Role.VIEWER))
    test = test.button("import-yes").click().run()
    assert not test.exception
    assert stored(url) == 0, "the role is asked for in the write, whatever was drawn before"
    assert not page().file_uploader


def test_an_editor_may(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access._Door, "identify", lambda _headers: Person("Ada", Role.EDITOR))
    test = looked_at(page(), ("history.jsonl", lines("one")))
    test.button("import-yes").click().run()
    assert stored(url) == 1


def test_nothing_is_written_under_the_name_of_an_upload(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    before = {path for path in tmp_path.rglob("*") if "compilewatch.db" not in path.name}
    test = looked_at(page(), (HOSTILE, lines("one")))
    assert not test.exception
    test.button("import-yes").click().run()
    assert stored(url) == 1
    assert {path for path in tmp_path.rglob("*") if "compilewatch.db" not in path.name} == before
    kinds = (test.markdown, test.caption, test.info, test.success, test.warning)
    assert not any("](http" in str(element.value) for kind in kinds for element in kind)


def test_pairs_and_archives_are_read_from_memory(url: str) -> None:
    pair = {name: text.encode() for name, text in TINY[Format.DYNAMO_CSV].items()}
    facts = {name: TOLD[name] for name in ("torch", "device_name", "measured_at")}
    together = preview(url, Upload(pair, "auto", facts))
    # Either file stands for both, and the second adds nothing.
    assert (together.new, together.known, together.problems) == (3, 3, ())
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, data in pair.items():
            archive.writestr(f"results/{name}", data)
    zipped = preview(url, Upload({"results.zip": packed.getvalue()}, "auto", facts))
    assert (zipped.new, zipped.known, zipped.problems) == (3, 3, ())
    squeezed = preview(url, Upload({"history.jsonl.gz": gzip.compress(lines("one"))}, "auto", {}))
    assert squeezed.new == 1


def test_sizes_and_numbers_are_bounded() -> None:
    with pytest.raises(CompilewatchError, match="more than 16 MiB"):
        files_of({"a": b"x", "b": bytes(LARGEST_MB * 2**20)})
    with pytest.raises(CompilewatchError, match="21 files"):
        files_of({str(number): b"" for number in range(21)})
    assert files_of({"C:\\results\\a.csv": b"1", "x/../b.csv": b"2", "": b"3"}) == {
        "a.csv": b"1",
        "b.csv": b"2",
        "upload": b"3",
    }


def test_a_bomb_is_refused(url: str) -> None:
    bomb = gzip.compress(bytes(64 * 2**20))
    (problem,) = preview(url, Upload({"bomb.gz": bomb}, "trial", {})).problems
    assert "expands too far" in problem or "line 1" in problem
    assert uploading.bring_in(url, Upload({"bomb.gz": bomb}, "trial", {}))[1] is False
    assert stored(url) == 0


def test_answers_become_options() -> None:
    options = options_of({**TOLD, "machine": "  gpu  box ", "label": ""})
    assert options.measured_at is not None
    assert options.measured_at.isoformat() == "2026-11-20T18:00:00+00:00"
    assert (options.machine, options.label, options.task) == ("gpu box", None, "inference")
    with pytest.raises(CompilewatchError, match="longer than 200"):
        options_of({"torch": "2" * 201})
