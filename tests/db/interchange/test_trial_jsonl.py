"""Our own jsonl: what is written comes back equal, what is damaged is named."""

import io
import json
import random
import re
from collections.abc import Callable
from itertools import repeat
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from db.errors import RecordError
from db.interchange.files import trial_jsonl
from db.interchange.files.opening import MAX_LINE_BYTES, input_files
from db.records.fast_json import QuickReader, whole
from db.records.trial import Trial, parse_trial
from db.store.trial_rows import Identifier, prepare, trial_columns
from tests.builders import make_imported, make_timed, make_trial
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


def stored(trial: Trial) -> dict[str, Any]:
    """What the store would write of a trial, its JSON read: how a float is spelled does not matter."""
    (prepared,) = prepare([trial], Identifier())
    details = [None if part is None else json.loads(part) for part in prepared.details]
    row = {name: value for name, (value,) in trial_columns([prepared]).items() if name != "content_hash"}
    return {"row": row, "details": details, "arrays": prepared.arrays, "record": whole(trial)}


def quickly(line: bytes, where: str) -> Trial:
    """As files are read to be stored."""
    (found,) = QuickReader().read([line])
    return by_pydantic(line, where) if found is None else found


def outcome(read_line: Callable[[bytes, str], Trial], line: bytes) -> dict[str, Any] | str:
    """What would be stored of a line, or why it is refused."""
    try:
        return stored(read_line(line, "line"))
    except RecordError as error:
        return error.message


def by_pydantic(line: bytes, where: str) -> Trial:
    return parse_trial(line, where=where)


@pytest.mark.parametrize(
    "make", [make_trial, make_timed, make_imported, lambda: make_trial(failure="crash", label='"x"')]
)
def test_a_line_is_read_alike_both_ways(make: Callable[[], Trial]) -> None:
    """Damaged lines too: the quick way may be quicker, never more lenient."""
    for seed in range(400):
        generator = random.Random(seed)
        line = make().to_json().encode()
        if seed:
            damage = generator.choice((other_number, other_text, duplicate_key, insert, cut_out))
            line = damage(line, generator).replace(b"\n", b"")
        assert outcome(quickly, line) == outcome(by_pydantic, line), line


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(trials())
def test_any_trial_is_read_alike_both_ways(trial: Trial) -> None:
    assert stored(quickly(trial.to_json().encode(), "line")) == stored(trial)


@pytest.mark.parametrize(
    "value", ["true", '"12"', "12.0", "12.5", "1e3", "null", "-1", "[1]", "9223372036854775808", "1e999"]
)
@pytest.mark.parametrize(
    "field", ['"samples_ns":[', '"calls_until_steady":', '"batch_size":', '"temperature_c":[']
)
def test_values_of_another_type_are_taken_or_refused_alike(field: str, value: str) -> None:
    line = re.sub(re.escape(field) + r"-?[\d.]+", field + value, make_trial().to_json(), count=1).encode()
    assert f"{field}{value}".encode() in line
    assert outcome(quickly, line) == outcome(by_pydantic, line)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"started_at":"2026-11-20T18:00:00Z"', '"started_at":"2026-11-20T18:00:00"'),
        ('"started_at":"2026-11-20T18:00:00Z"', '"started_at":"2026-11-20T20:00:00+02:00"'),
        ('"started_at":"2026-11-20T18:00:00Z"', '"started_at":"2026-13-20T18:00:00Z"'),
        ('"started_at":"2026-11-20T18:00:00Z"', '"started_at":1795000000'),
        ('"reason":"', '"reason":"\\u0000 \\ud800 '),
        ('"reason":"', '"reason":"\\n \\"quoted\\" '),
        ('"reason":"', '"reason":"' + "x" * 10_001),
        ('"other":', '"other":1'),
        ('"status":"ok"', '"status":"ok","failure":{"kind":"crash","message":"x"}'),
        ('"status":"ok"', '"status":"failed"'),
        ('"status":"ok"', '"status":"ok","line":"x"'),
        ('"status":"ok"', '"status":"ok","workload":{"name":"x"}'),
        ('"status":"ok"', '"status":"ok","schema":"compilewatch.trial/2"'),
    ],
)
def test_what_needs_more_than_types_is_checked_alike(old: str, new: str) -> None:
    text = make_trial().to_json()
    assert old in text
    line = text.replace(old, new, 1).encode()
    assert outcome(quickly, line) == outcome(by_pydantic, line)


ARRAYS = [
    "[]", "[ ]", "[1, 2]", "[0]", "[01]", "[1,2] ", "[[1],[2]]", "[[1,2]]", "[[]]", "[1,[2]]", "5", "12",
    '"12"', "null", "true", "{}", "[null]", '["1"]', "[1,-2]", "[-0]", "[1e3]", "[1.0]", "[+1]", "[1,]",
    "[1,2", "[999999999999999999]", "[1000000000000000000]", "[9223372036854775807]", "[9223372036854775808]",
    '[1],"samples_ns":[2]', '["x"],"samples_ns":[2]', '[1],"numerics":null',
]  # fmt: skip


@pytest.mark.parametrize("array", ARRAYS)
@pytest.mark.parametrize("field", ["samples_ns", "control_samples_ns", "host_samples_ns", "warmup_ns"])
def test_arrays_are_taken_or_refused_alike(field: str, array: str) -> None:
    text = re.sub(rf'"{field}":\[[^]]*\]', f'"{field}":{array}', make_trial().to_json())
    assert f'"{field}":{array}' in text
    assert outcome(quickly, text.encode()) == outcome(by_pydantic, text.encode())


@pytest.mark.parametrize("name", ["workload", "build", "compiler", "numerics", "samples_ns"])
@pytest.mark.parametrize("other", [b"null", b"{}", b'"\xff"', b'"\x01"', b"[1]", b"[" * 150 + b"]" * 150])
def test_a_part_told_twice_is_taken_or_refused_alike(name: str, other: bytes) -> None:
    line = make_trial().to_json().encode()
    twice = b'{"%b":%b,' % (name.encode(), other) + line[1:]
    assert outcome(quickly, twice) == outcome(by_pydantic, twice)


def test_what_a_second_telling_replaces_may_be_anything() -> None:
    """pydantic would refuse it for its depth alone; nothing of it is stored."""
    line = make_trial(trial_id="one").to_json().encode()
    (found,) = QuickReader().read([b'{"samples_ns":%b,' % (b"[" * 500 + b"]" * 500) + line[1:]])
    assert whole(found) == parse_trial(line)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_lines_read_together_are_those_read_one_by_one(data: st.DataObject) -> None:
    """Also where some lines are left to pydantic, and where one is wrong."""
    whole_line = make_trial(trial_id="one", seed=data.draw(st.integers(0, 3))).to_json().encode()
    odd = (
        whole_line.replace(b'"samples_ns":[', b'"samples_ns":[1.0,'),
        whole_line.replace(b'"samples_ns":[', b'"samples_ns":["x",'),
        whole_line.replace(b'"label":null', b'"label":"\\u00b5"'),
        whole_line.replace(b'"control_samples_ns":[', b'"control_samples_ns":[[],'),
    )
    lines = data.draw(st.lists(st.sampled_from((whole_line, whole_line, whole_line, *odd)), max_size=7))
    together = QuickReader().read(lines)
    for line, found in zip(lines, together, strict=True):
        alone = outcome(by_pydantic, line)
        assert outcome(by_pydantic if found is None else lambda *_, read=found: read, line) == alone
        assert (found is None) == (line in odd)


def test_the_first_of_several_wrong_lines_is_named(tmp_path: Path) -> None:
    """Arrays are looked at after the rest of some lines: the order of the file decides all the same."""
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
        (file,) = input_files(path)
        with pytest.raises(RecordError, match=f"line 2: {field}"):
            list(trial_jsonl.read_to_store([file], 1_000, repeat(True)))


def test_a_setting_inside_another_object_is_none() -> None:
    """The same bytes, one level deeper: only the outermost object holds a trial's workload."""
    line = make_trial().to_json()
    inner = line.index('"workload":')
    deeper = (line[:inner] + '"build":{"settings":{' + line[inner:] + "}}}").encode()
    assert outcome(quickly, deeper) == outcome(by_pydantic, deeper)


def test_lines_are_read_the_quick_way_and_share_what_they_repeat() -> None:
    first, second = QuickReader().read([make_trial(seed=n).to_json().encode() for n in range(2)])
    assert type(first) is type(second) is not Trial
    assert first is not None
    for name in ("workload", "strategy", "machine", "build", "compiler", "numerics"):
        assert getattr(first, name) is getattr(second, name)
