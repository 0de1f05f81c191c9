"""Our own jsonl: what is written comes back equal, what is damaged is named."""

import io
import json
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from db.errors import RecordError
from db.interchange import trial_jsonl
from db.interchange.trial_jsonl import Lines
from db.quick_trials import whole
from db.records import Trial, parse_trial
from db.store_rows import Identifier, prepare, trial_row
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


def stored(trial: Trial) -> dict[str, Any]:
    """What the store would write of a trial, its JSON read: how a float is spelled does not matter."""
    (prepared,) = prepare([trial], Identifier())
    details = [None if part is None else json.loads(part) for part in prepared.details]
    row = trial_row(prepared) | {"content_hash": None}
    return {"row": row, "details": details, "arrays": prepared.arrays, "record": whole(trial)}


def outcome(read_line: Callable[[bytes, str], Trial], line: bytes) -> dict[str, Any] | str:
    """What would be stored of a line, or why it is refused."""
    try:
        return stored(read_line(line, "line"))
    except RecordError as error:
        return error.message


def by_pydantic(line: bytes, where: str) -> Trial:
    return parse_trial(line, where=where)


@pytest.mark.parametrize(
    "make", [make_trial, make_imported, lambda: make_trial(failure="crash", label='"x"')]
)
def test_a_line_is_read_alike_both_ways(make: Callable[[], Trial]) -> None:
    """Damaged lines too: the quick way may be quicker, never more lenient."""
    lines = Lines()
    for seed in range(400):
        generator = random.Random(seed)
        line = make().to_json().encode()
        if seed:
            damage = generator.choice((other_number, other_text, duplicate_key, insert, cut_out))
            line = damage(line, generator).replace(b"\n", b"")
        assert outcome(lines.trial, line) == outcome(by_pydantic, line), line


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(trials())
def test_any_trial_is_read_alike_both_ways(trial: Trial) -> None:
    assert stored(Lines().trial(trial.to_json().encode(), "line")) == stored(trial)


@pytest.mark.parametrize(
    "value", ["true", '"12"', "12.0", "12.5", "1e3", "null", "-1", "[1]", "9223372036854775808", "1e999"]
)
@pytest.mark.parametrize(
    "field", ['"samples_ns":[', '"calls_until_steady":', '"batch_size":', '"temperature_c":[']
)
def test_values_of_another_type_are_taken_or_refused_alike(field: str, value: str) -> None:
    line = re.sub(re.escape(field) + r"-?[\d.]+", field + value, make_trial().to_json(), count=1).encode()
    assert f"{field}{value}".encode() in line
    assert outcome(Lines().trial, line) == outcome(by_pydantic, line)


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
    assert outcome(Lines().trial, line) == outcome(by_pydantic, line)


def test_a_setting_inside_another_object_is_none() -> None:
    """The same bytes, one level deeper: only the outermost object holds a trial's workload."""
    line = make_trial().to_json()
    inner = line.index('"workload":')
    deeper = (line[:inner] + '"build":{"settings":{' + line[inner:] + "}}}").encode()
    assert outcome(Lines().trial, deeper) == outcome(by_pydantic, deeper)


def test_lines_are_read_the_quick_way_and_share_what_they_repeat() -> None:
    lines = Lines()
    first, second = (lines.trial(make_trial(seed=n).to_json().encode(), "line") for n in range(2))
    assert not isinstance(first, Trial)
    assert first.machine is second.machine
    assert first.build is second.build
