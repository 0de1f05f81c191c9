"""Text and numbers that a database would refuse never get into a record."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from compilewatch.db.engine.session import Database
from compilewatch.db.errors import RecordError
from compilewatch.db.queries.trials import trial_record
from compilewatch.db.records.trial import parse_trial
from compilewatch.db.store.trials import save_trial
from tests.builders import make_build, make_failure, make_machine, make_strategy, make_trial, make_workload

HOSTILE = [
    "<script>alert(1)</script>",
    "![x](http://example.invalid/x.png)",
    "'; DROP TABLE trial; --",
    "\u202egnirts\u202c",
    "\x01\x02\x7f\x1b[31m",
    "\r\n\t ",
    "\U0001d518\U0001d52b \U0001f469\u200d\U0001f466 e\u0301",
    "%s {0} $1 :name ?",
    "\ufffe\uffff",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_is_kept_as_it_is(database: Database, text: str) -> None:
    trial = make_trial(
        workload=make_workload(text, item=text, shape={text: 1}),
        strategy=make_strategy(name=text, options={text: text}),
        machine=make_machine(text, device_name=text),
        build=make_build(packages={text: text}, label=text),
        failure=make_failure(message=text, log_tail=text * 100),
        suite=text,
        label=text,
    )
    save_trial(database, trial)
    assert trial_record(database, trial.trial_id) == trial


@given(text=st.text(st.characters(codec=None), max_size=50))
def test_free_text_of_other_programs_never_stops_a_failure_report(text: str) -> None:
    failure = make_failure(message=text + "\x00", log_tail="\ud800" + text)
    assert not set(failure.message) & {"\x00", "\ud800"}
    failure.model_dump_json().encode()


def test_repaired_text_keeps_everything_else() -> None:
    assert make_failure(message="before\x00\udcffafter").message == "before\ufffd\ufffdafter"


@pytest.mark.parametrize("name", ["a\x00b", "\x00", "a\ud800b", "", "x" * 201])
def test_names_that_cannot_be_stored_are_refused(name: str) -> None:
    for build in (
        lambda: make_machine(name),
        lambda: make_workload(item=name),
        lambda: make_trial(suite=name),
    ):
        with pytest.raises(ValidationError):
            build()


@pytest.mark.parametrize(
    "value",
    [
        math.nan,
        -math.inf,
        "a\x00b",
        "\udfff",
        2**63,
        (1, 2),
        {1, 2},
        b"bytes",
        {"deep": [{"nan": math.nan}]},
        {1: "key"},
    ],
)
def test_options_that_are_no_json_are_refused(value: Any) -> None:
    with pytest.raises(ValidationError):
        make_strategy(options={"option": value})
    with pytest.raises(ValidationError):
        make_build(settings={"setting": value})


def test_options_nested_too_deeply_are_refused() -> None:
    nested: Any = 1
    for _ in range(1000):
        nested = [nested]
    with pytest.raises(ValidationError, match="nested more than"):
        make_strategy(options={"option": nested})


@pytest.mark.parametrize("bad", ["NaN", "Infinity", "-Infinity", "1e999", '"\\u0000"', '"\\ud800"'])
def test_a_file_with_such_a_value_names_the_place(bad: str) -> None:
    text = make_trial(strategy=make_strategy(options={"option": 12345})).to_json().replace("12345", bad)
    with pytest.raises(RecordError, match=r"results\.jsonl:7"):
        parse_trial(text, where="results.jsonl:7")
