"""Whatever arrives, in a configuration, on a worker's pipe or in a record file, a person gets a sentence.

`make fuzz` runs these with many more examples than the default.
"""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from db.errors import ConfigError, RecordError
from db.records.trial import Status, Trial, parse_trial
from runner.config.settings import Settings
from runner.config.sources import load_settings
from runner.device.state import DeviceFacts, DeviceWatch, device_facts
from runner.process.pipe import ProcessOutcome
from runner.process.record import Listening, assemble
from tests.builders import make_trial
from tests.runner.measuring import make_spec

EXAMPLES = int(os.environ.get("COMPILEWATCH_FUZZ_EXAMPLES", "50"))
many = settings(
    max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=20)
    | st.sampled_from(["ok", "failed", "eager", "../../etc/passwd", "__class__", "'; DROP TABLE trial; --"])
)
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4),
    max_leaves=12,
)
KEYS = st.sampled_from(sorted(Settings.model_fields)) | st.text(max_size=10)


@pytest.fixture(autouse=True)
def _alone(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@many
@given(st.dictionaries(KEYS, JSON | st.dictionaries(st.text(max_size=12), JSON, max_size=4), max_size=4))
def test_any_configuration_is_settings_or_a_sentence(content: dict[str, Any]) -> None:
    try:
        assert isinstance(load_settings(options=content), Settings)
    except ConfigError as error:
        expect_a_sentence(error)


@many
@given(st.binary(max_size=200) | st.text(max_size=200).map(str.encode))
def test_any_file_is_settings_or_a_sentence(tmp_path: Any, content: bytes) -> None:
    file = tmp_path / "compilewatch.toml"
    file.write_bytes(content)
    try:
        assert isinstance(load_settings(file), Settings)
    except ConfigError as error:
        expect_a_sentence(error)


@many
@given(st.binary(max_size=300))
def test_any_bytes_are_no_record(content: bytes) -> None:
    with pytest.raises(RecordError) as caught:
        parse_trial(content, where="line 7")
    expect_a_sentence(caught.value)


@many
@given(st.data())
def test_a_record_with_anything_anywhere_is_a_record_or_a_sentence(data: st.DataObject) -> None:
    content = json.loads(RECORD.to_json())
    place, key = data.draw(st.sampled_from(list(places(content))))
    place[key] = data.draw(JSON)
    try:
        trial = parse_trial(json.dumps(content).encode(), where="line 7")
    except RecordError as error:
        expect_a_sentence(error)
    else:
        assert parse_trial(trial.to_json(), where="again") == trial


RECORD = make_trial()
MARKS = ("phase", "facts", "pause", "energy", "record", "x")
SPEC = make_spec("relu_function")
DEVICE: DeviceFacts = device_facts("cpu")
_LINES = (
    st.binary(max_size=80)
    | JSON.map(lambda value: json.dumps(value).encode())
    | st.fixed_dictionaries(
        {"mark": st.sampled_from(["phase", "facts", "pause", "energy", "record", "x"])}
    ).flatmap(
        lambda mark: st.dictionaries(
            st.sampled_from(["phase", "machine", "build", "record", "at_ns", "side", "steps"]),
            JSON,
            max_size=3,
        ).map(lambda more: json.dumps(mark | more).encode())
    )
)


@many
@given(st.lists(_LINES, max_size=5), st.binary(max_size=20))
def test_whatever_a_worker_sends_there_is_one_valid_trial(lines: list[bytes], rest: bytes) -> None:
    listening = Listening(lambda _phase: None, DeviceWatch("cpu"))
    for line in lines:
        listening.receive(line)
    outcome = ProcessOutcome(exit_code=0, lines=lines, unfinished=rest)
    now = datetime.now(UTC)
    trial = assemble(
        SPEC,
        outcome,
        listening,
        started_at=now,
        ended_at=now,
        oom_killed=False,
        device=DEVICE,
        compiler=None,
    )
    assert parse_trial(trial.to_json(), where="stored") == trial
    assert trial.trial_id == SPEC.trial_id
    assert trial.status is Status.OK or trial.failure is not None


def expect_a_sentence(error: ConfigError | RecordError) -> None:
    assert error.message
    assert "\n" not in error.message
    assert len(error.message) < 2_000


def places(content: Any) -> list[tuple[Any, Any]]:
    """Every container of a JSON value with each of its keys."""
    if isinstance(content, dict):
        here = [(content, key) for key in content]
        return here + [found for value in content.values() for found in places(value)]
    if isinstance(content, list):
        here = [(content, number) for number in range(len(content))]
        return here + [found for value in content for found in places(value)]
    return []


def test_the_record_that_is_bent_is_one() -> None:
    assert isinstance(parse_trial(RECORD.to_json(), where="here"), Trial)


def test_what_the_first_call_cost_is_kept_where_a_trial_fails_after_it() -> None:
    """Before it has sampled, a worker does not say how it timed its steps."""
    listening = Listening(lambda _phase: None, DeviceWatch("cpu"))
    failure = {"kind": "out_of_memory", "phase": "warmup", "message": "no room"}
    cold = {"first_call_ns": 2_000, "first_call_cpu_ns": 1_900, "first_call_instructions": None}
    line = json.dumps({"mark": "record", "status": "failed", "failure": failure, "cold_start": cold}).encode()
    listening.receive(line)
    now = datetime.now(UTC)
    trial = assemble(
        SPEC,
        ProcessOutcome(exit_code=0, lines=[line]),
        listening,
        started_at=now,
        ended_at=now,
        oom_killed=False,
        device=DEVICE,
        compiler=None,
    )
    assert trial.failure is not None
    assert trial.cold_start is not None
    assert trial.failure.message.startswith("no room")
    assert trial.cold_start.first_call_cpu_ns == 1_900
