"""Uploading result files: looked at before they are stored, asked for what they do not say, editors only."""

from __future__ import annotations

import gzip
import io
import json
import zipfile
from pathlib import Path

import pytest

from compilewatch.dashboard.login import access
from compilewatch.dashboard.login.access import Person, Role
from compilewatch.dashboard.write import uploading
from compilewatch.dashboard.write.uploading import LARGEST_MB, Upload, files_of, options_of, preview
from compilewatch.db.engine.session import open_database
from compilewatch.db.errors import CompilewatchError
from compilewatch.db.interchange.formats import Format
from compilewatch.db.interchange.importing import Writing
from compilewatch.db.queries.trials import trials_frame
from tests.builders import make_trial
from tests.dashboard.conftest import texts
from tests.dashboard.uploads import TOLD, looked_at, page, stored
from tests.db.interchange.tiny_files import TINY

HOSTILE = "../../![x](http://evil.example/a.png) *b* <script>.jsonl"
TABLE = TINY[Format.CSV]["table.csv"].encode()


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
        "Name of the run",
        *(uploading.QUESTIONS[name][0] for name in uploading.MORE),
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
        files_of([("a", b"x"), ("b", bytes(LARGEST_MB * 2**20))])
    with pytest.raises(CompilewatchError, match="21 files"):
        files_of([(str(number), b"") for number in range(21)])
    assert files_of([("C:\\results\\a.csv", b"1"), ("x/../b.csv", b"2"), ("", b"3")]) == {
        "a.csv": b"1",
        "b.csv": b"2",
        "upload": b"3",
    }


def test_what_is_left_out_of_a_file_is_said_before_it_comes_in(sqlite_url: str) -> None:
    data = json.dumps(
        {
            "cold_startup_times": [10.0, None],
            "cold_compilation_times": [2.0, 2.0],
            "warm_startup_times": [5.0],
            "warm_compilation_times": [1.0],
        }
    ).encode()
    facts = {"torch": "2.11.0", "device": "cuda", "measured_at": "2026-11-20 18:00"}
    shown = uploading.preview(sqlite_url, Upload({"llama.json": data}, "auto", facts))
    assert (shown.new, shown.notes) == (2, ("llama.json: 1 cold start without a time left out.",))


def test_what_else_a_file_may_not_say_is_taken(url: str) -> None:
    table = b"mode,latency_ms\neager,2\ndefault,1\n"
    facts = TOLD | {"workload": "mine", "packages": "transformers=4.57.1, timm=1.0.20", "batch_size": "8"}
    meanings = {"mode": "strategy", "latency_ms": "latency_ms"}
    brought = preview(url, Upload({"table.csv": table}, "csv", facts, meanings))
    assert set(brought.rows["workload"]) == {"mine"}
    assert set(brought.rows["batch_size"]) == {8}
    assert options_of(facts).packages == {"transformers": "4.57.1", "timm": "1.0.20"}
    for name, wrong in (("packages", "transformers"), ("batch_size", "0")):
        with pytest.raises(CompilewatchError, match=wrong):
            options_of({name: wrong})


LONG = b"""model,mode,metric_name,value,unit
bert,eager,speed,4,ms
bert,eager,memory,900,MB
bert,turbo,speed,2,ms
bert,turbo,memory,800,MB
"""
MEANT = {"model": "workload", "mode": "strategy", "value": "latency_ms"}


def test_what_the_command_takes_by_options_the_page_asks_for(url: str) -> None:
    """Each refusal names the field that answers it, which stands open from then on."""
    test = looked_at(page(), ("long.csv", LONG))
    for box in test.selectbox:
        if str(box.key).startswith("import-column-"):
            box.set_value(MEANT.get(box.label.replace("\\", ""), ""))
    test = looked_at(looked_at(test), **TOLD)
    assert "metric_name: is memory here and speed above: two metrics" in texts(test)
    only, meaning = (uploading.QUESTIONS[name][0] for name in ("where", "words"))
    assert f"Choose one of them: \u201c{only}\u201d" in texts(test)
    fields = [field.label for field in test.text_input if str(field.key).startswith("import-")]
    assert fields.index(only) < fields.index("Name of the machine"), "it stands among what is asked"
    test = looked_at(test, where="metric_name=speed")
    assert "turbo is no word that is known" in texts(test)
    assert f"Say what it means: \u201c{meaning}\u201d" in texts(test)
    assert not any(option in texts(test) for option in ("--where", "--map")), "a page has no options"
    test = looked_at(test, words="turbo=max-autotune")
    assert not test.exception
    assert "Would bring in 2 new trials" in texts(test)
    test.button("import-yes").click().run()
    with open_database(url, read_only=True) as database:
        frame = trials_frame(database).set_index("strategy")
    assert dict(frame["latency_ns"]) == {"eager": 4_000_000, "max-autotune": 2_000_000}


def test_a_metric_is_named_as_the_latency_on_the_page(url: str) -> None:
    record = {
        "benchmark": {"name": "ExecuTorch", "mode": "inference", "dtype": "fp16"},
        "model": {"name": "mv3", "backend": "xnnpack"},
        "metric": {"name": "speed", "benchmark_values": [12.5]},
    }
    test = looked_at(page(), ("v3.json", json.dumps(record).encode()))
    test = looked_at(test, **{name: TOLD[name] for name in ("torch", "device", "device_name", "measured_at")})
    test = looked_at(test, latency="speed")
    assert f"Name it: \u201c{uploading.QUESTIONS['latency'][0]}\u201d" in texts(test)
    test = looked_at(test, latency="speed=ms")
    rows = next(e.value for e in test.dataframe if "latency_ms" in e.value.columns)
    assert list(rows["latency_ms"]) == [12.5]


@pytest.mark.parametrize("wrong", ["where", "words", "packages"])
def test_what_is_no_pair_is_said(url: str, wrong: str) -> None:
    test = looked_at(page(), ("table.csv", TABLE), **{wrong: "turbo"})
    assert "turbo" in texts(test)
    assert "Write" in texts(test)
    assert stored(url) == 0


def test_two_files_of_one_name_do_not_overwrite_each_other(url: str) -> None:
    one, other = ("results.jsonl", lines("one")), ("results.jsonl", lines("two"))
    test = looked_at(page(), one, other)
    assert "Two files are called results.jsonl and differ. Import them one after the other" in texts(test)
    assert stored(url) == 0
    assert "Would bring in 1 new trial" in texts(looked_at(page(), one, one))


def test_a_corrected_file_replaces_and_a_wrong_one_is_taken_out(url: str) -> None:
    def done(latency_ms: float, choice: Writing) -> str:
        table = f"workload,strategy,latency_ms\nbert,default,{latency_ms}\n".encode()
        test = looked_at(page(), ("table.csv", table))
        test.selectbox("import-do").set_value(choice)
        test = looked_at(test, **TOLD)
        said = texts(test)
        test = test.button("import-yes").click().run()
        assert not test.exception
        return said + test.success[0].value

    def latencies() -> list[float]:
        with open_database(url, read_only=True) as database:
            return list(trials_frame(database)["latency_ns"])

    done(4, Writing.ADD)
    said = done(8, Writing.REPLACE)
    assert "Would bring in 1 new trial in place of 1" in said
    assert "Brought in 1 new trial in place of 1." in said
    assert latencies() == [8_000_000]
    said = done(8, Writing.REMOVE)
    assert "Would take out 1 trial" in said
    assert "Took out 1 trial." in said
    assert latencies() == []
