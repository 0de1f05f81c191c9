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

from compilewatch.db.errors import ConfigError, RecordError
from compilewatch.db.records.trial import Status, parse_trial
from compilewatch.runner.config.settings import Settings
from compilewatch.runner.config.sources import load_settings
from compilewatch.runner.device.state import DeviceFacts, DeviceWatch, device_facts
from compilewatch.runner.process.pipe import ProcessOutcome
from compilewatch.runner.process.record import Listening, assemble
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
    assert trial.failure.message.startswith("no room")
    assert trial.cold_start.first_call_cpu_ns == 1_900
