"""Our own jsonl: what is written comes back equal, what is damaged is named."""

import io
import random
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from db.errors import RecordError
from db.interchange import trial_jsonl
from db.records import Trial, parse_trial
from tests.builders import make_imported, make_trial
from tests.db.interchange.mutations import cut_out, duplicate_key, insert, other_number, other_text
from tests.db.interchange.reading import read
from tests.record_strategies import trials


@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(st.lists(trials(), min_size=1, max_size=3))
def test_what_is_written_comes_back_equal(tmp_path: Path, written: list[Trial]) -> None:
    path = tmp_path / "trials.jsonl"
    with path.open("wb") as stream:
        assert trial_jsonl.write(written, stream) == len(written)
    assert read(path, format="trial") == written


def test_each_trial_is_one_line_of_utf8() -> None:
    output = io.BytesIO()
    trial_jsonl.write([make_trial(label="zwei\nZeilen — µs"), make_trial()], output)
    assert output.getvalue().count(b"\n") == 2
    assert "µs".encode() in output.getvalue()


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
    assert f"{path}, line 2: workload.dtype: " in raised.value.message


def test_an_unknown_key_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "trials.jsonl"
    path.write_text(make_trial().to_json().replace('{"schema"', '{"speed":1,"schema"', 1))
    with pytest.raises(RecordError, match="line 1: speed: "):
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


def outcome(read_line: Callable[[bytes], Trial], line: bytes) -> Trial | str:
    try:
        return read_line(line)
    except RecordError as error:
        return error.message


@pytest.mark.parametrize(
    "make", [make_trial, make_imported, lambda: make_trial(failure="crash", label='"x"')]
)
def test_a_line_reads_the_same_whole_and_in_parts(make: Callable[[], Trial]) -> None:
    """Damaged lines too: what is repeated between lines may make them faster, never more lenient."""
    lines = trial_jsonl._Lines()
    for seed in range(400):
        generator = random.Random(seed)
        line = make().to_json().encode()
        if seed:
            damage = generator.choice((other_number, other_text, duplicate_key, insert, cut_out))
            line = damage(line, generator).replace(b"\n", b"")
        expected = outcome(lambda data: parse_trial(data, where="line"), line)
        assert outcome(lambda data: lines.trial(data, "line"), line) == expected


@pytest.mark.parametrize("value", ["true", '"12"', "12.0", "12.5", "1e3", "null", "-1", "[1]"])
@pytest.mark.parametrize(
    "field", ['"samples_ns":[', '"calls_until_steady":', '"batch_size":', '"temperature_c":[']
)
def test_values_of_another_type_are_taken_or_refused_alike(field: str, value: str) -> None:
    line = re.sub(re.escape(field) + r"-?[\d.]+", field + value, make_trial().to_json(), count=1).encode()
    assert f"{field}{value}".encode() in line
    expected = outcome(lambda data: parse_trial(data, where="line"), line)
    assert outcome(lambda data: trial_jsonl._Lines().trial(data, "line"), line) == expected


def test_what_is_said_twice_on_both_sides_of_the_setting_is_read_as_a_whole() -> None:
    trial = make_trial()
    line = trial.to_json().replace('"status":"ok"', '"status":"ok","workload":{"name":"x"}', 1).encode()
    assert "line: workload." in str(outcome(lambda data: trial_jsonl._Lines().trial(data, "line"), line))


def test_a_setting_inside_another_object_is_none() -> None:
    """The same bytes, one level deeper: only the outermost object holds a trial's workload."""
    line = make_trial().to_json()
    inner = line.index('"workload":')
    deeper = (line[:inner] + '"build":{"settings":{' + line[inner:] + "}}}").encode()
    assert isinstance(outcome(lambda data: trial_jsonl._Lines().trial(data, "line"), deeper), str)


def test_lines_share_what_they_repeat(tmp_path: Path) -> None:
    path = tmp_path / "trials.jsonl"
    path.write_text("".join(make_trial(seed=n).to_json() + "\n" for n in range(3)))
    first, second, third = read(path)
    assert first.machine is second.machine is third.machine
    assert first.build is second.build
