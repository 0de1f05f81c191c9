"""No complaint about a record is in pydantic's words."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from compilewatch.db.errors import RecordError
from compilewatch.db.records.fields import first_problem, problem
from compilewatch.db.records.trial import Trial, parse_trial
from tests.builders import make_trial

PYDANTIC = re.compile(
    r"Input should|Value error|Extra inputs|Field required|Unable to|type=|pydantic|is wrong:"
    r"|valid (?:integer|string|number|dict|list)"
)
WHOLE = json.loads(make_trial().to_json())
OTHER_VALUES = ("x", "", "\x00", 1, -1, 1.5, 2**70, True, None, [], [[]], {}, {"no": "such"})


def places(document: Any, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """The path of every value in a document, of lists only the first."""
    found = [path] if path else []
    if isinstance(document, dict):
        return found + [each for key, value in document.items() for each in places(value, (*path, key))]
    if isinstance(document, list) and document:
        return found + places(document[0], (*path, 0))
    return found


def put(document: Any, path: tuple[str | int, ...], value: object) -> Any:
    changed = json.loads(json.dumps(document))
    here = changed
    for step in path[:-1]:
        here = here[step]
    here[path[-1]] = value
    return changed


def refusal(text: str) -> str | None:
    """What is said of `text`; None when it is a record."""
    try:
        parse_trial(text, where="file, line 1")
    except RecordError as error:
        return error.message
    return None


@given(path=st.sampled_from(places(WHOLE)), value=st.sampled_from(OTHER_VALUES))
def test_a_wrong_value_is_told_in_plain_words(path: tuple[str | int, ...], value: object) -> None:
    message = refusal(json.dumps(put(WHOLE, path, value)))
    if message is None:
        return
    assert not PYDANTIC.search(message), message
    assert message.startswith("file, line 1: ")
    assert message.endswith(".")
    assert "\n" not in message


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"status": "maybe"}, "status must be 'ok' or 'failed', not 'maybe'"),
        ({"samples_ns": [1.5]}, "samples_ns.0 must be a whole number, not 1.5"),
        ({"samples_ns": 5}, "samples_ns must be a list, not 5"),
        (
            {"started_at": "yesterday"},
            "started_at must be a time such as 2026-11-20T18:00:00Z, not 'yesterday'",
        ),
        ({"started_at": "2026-11-20T18:00:00"}, "started_at: must carry a time zone"),
        ({"more": 1}, "more is none of the known keys"),
        ({"workload": None}, "workload must be a table, not null"),
        ({"status": "failed"}, "the whole record: a failed trial must carry its failure"),
        ({"machine": {}}, "machine.name is missing"),
    ],
)
def test_the_first_problem_as_a_sentence(changes: dict[str, Any], told: str) -> None:
    with pytest.raises(RecordError) as caught:
        parse_trial(json.dumps(WHOLE | changes), where="here")
    assert caught.value.message == f"here: {told}."


def test_what_is_no_json_is_told_so() -> None:
    with pytest.raises(RecordError, match=r"^here: the whole record is not JSON: "):
        parse_trial("{", where="here")


def test_a_long_value_is_not_repeated_whole() -> None:
    with pytest.raises(ValidationError) as caught:
        Trial.model_validate(WHOLE | {"status": "x" * 10_000, "started_at": datetime.now(UTC)})
    assert len(first_problem(caught.value, "it")) < 200
    assert len(problem(caught.value.errors()[0])) < 150
