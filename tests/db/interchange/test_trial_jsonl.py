"""Our own jsonl: what is written comes back equal, what is damaged is named."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from compilewatch.db.errors import RecordError
from compilewatch.db.interchange.files import trial_jsonl
from compilewatch.db.interchange.files.opening import MAX_LINE_BYTES
from compilewatch.db.records.trial import Trial
from tests.builders import make_trial
from tests.db.interchange.reading import read
from tests.few_examples import FEW
from tests.record_strategies import trials


@settings(
    FEW,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(st.lists(trials(), min_size=1, max_size=3))
def test_what_is_written_comes_back_equal(tmp_path: Path, written: list[Trial]) -> None:
    path = tmp_path / "trials.jsonl"
    with path.open("wb") as stream:
        lines = (trial.to_json().encode() for trial in written)
        assert trial_jsonl.write_lines(lines, stream) == len(written)
    assert read(path, format="trial") == written


def test_each_trial_is_one_line_of_utf8() -> None:
    line = make_trial(label="zwei\nZeilen — µs").to_json()
    assert "\n" not in line
    assert "µs" in line


def test_byte_order_mark_crlf_and_empty_lines_are_no_content(tmp_path: Path) -> None:
    first, second = make_trial(), make_trial()
    path = tmp_path / "windows.jsonl"
    path.write_bytes(
        b"\xef\xbb\xbf" + first.to_json().encode() + b"\r\n\r\n" + second.to_json().encode() + b"\r\n"
    )
    assert read(path) == [first, second]


def test_an_error_names_file_line_and_field(tmp_path: Path) -> None:
    good = make_trial().to_json()
    path = tmp_path / "trials.jsonl"
    path.write_text(good + "\n" + make_trial().to_json().replace('"dtype":"bfloat16"', '"dtype":7') + "\n")
    with pytest.raises(RecordError) as raised:
        read(path)
    assert f"{path}, line 2: workload.dtype" in raised.value.message


def test_an_unknown_key_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "trials.jsonl"
    path.write_text(make_trial().to_json().replace('{"schema"', '{"speed":1,"schema"', 1))
    with pytest.raises(RecordError, match="line 1: speed"):
        read(path)


@pytest.mark.parametrize(
    "damage", ["NaN", "Infinity", "1e999", '"\\ud800"', '"\\u0000"', "[" * 5000 + "]" * 5000]
)
def test_what_no_database_keeps_is_refused(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "trials.jsonl"
    path.write_text(make_trial().to_json().replace('"options":{}', f'"options":{{"x":{damage}}}'))
    assert damage in path.read_text()
    with pytest.raises(RecordError, match="line 1"):
        read(path)


def test_the_first_of_several_wrong_lines_is_named(tmp_path: Path) -> None:
    good = make_trial().to_json()
    wrong_array, wrong_name = (
        good.replace('"samples_ns":[', '"samples_ns":["x",'),
        good.replace("bert-base", ""),
    )
    path = tmp_path / "trials.jsonl"
    for first, second, field in (
        (wrong_array, wrong_name, "samples_ns"),
        (wrong_name, wrong_array, "workload"),
    ):
        path.write_text("\n".join((good, first, good, second, "x" * (MAX_LINE_BYTES + 2))))
        with pytest.raises(RecordError, match=f"line 2: {field}"):
            read(path)
