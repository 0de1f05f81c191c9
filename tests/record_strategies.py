"""Hypothesis strategies for whole trial records, built from the fields' own types, at their limits."""

from __future__ import annotations

import types
import typing
from datetime import UTC, datetime
from enum import StrEnum
from functools import cache
from typing import Any

from hypothesis import strategies as st

from compilewatch.db.records import fields, sampling_facts
from compilewatch.db.records.fields import Record
from compilewatch.db.records.trial import (
    CONTROL_TIMES,
    DEVICE_TIMES,
    INT64_MAX,
    ColdStart,
    Failure,
    Headline,
    Status,
    Summary,
    Timing,
    Trial,
)

# Every character that a record may hold: all but NUL and lone surrogates.
_characters = st.characters(exclude_characters="\x00", exclude_categories=("Cs",))
_names = st.text(_characters, min_size=1, max_size=20)
_keys = st.text(_characters, max_size=10)
_texts = st.text(_characters, max_size=40)
_counts = st.integers(0, INT64_MAX)
_finite = st.floats(allow_nan=False, allow_infinity=False)
_json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-INT64_MAX, INT64_MAX) | _finite | _texts,
    lambda values: st.lists(values, max_size=3) | st.dictionaries(_keys, values, max_size=3),
    max_leaves=6,
)
_YEARS = (datetime(2016, 1, 1), datetime(2900, 1, 1))  # noqa: DTZ001 - hypothesis adds the zone
_OF_FIELD: list[tuple[Any, st.SearchStrategy[Any]]] = [
    (fields.UtcDatetime, st.datetimes(*_YEARS, timezones=st.just(UTC))),
    (fields.Nanoseconds, _counts),
    (fields.Latency, st.integers(1, INT64_MAX)),
    (fields.Integer, st.integers(-INT64_MAX, INT64_MAX)),
    (fields.Finite, _finite),
    (sampling_facts.Fraction, st.floats(0, 1)),
    (fields.Triple, st.lists(_finite, min_size=3, max_size=3)),
    (fields.Identifier, st.from_regex(r"\A[A-Za-z0-9][A-Za-z0-9._:-]{0,63}\Z")),
    (fields.Commit, st.from_regex(r"\A[0-9a-f]{40}\Z")),
    (fields.SourceHash, st.from_regex(r"\A[0-9a-f]{16}\Z")),
    (fields.Name, _names),
    (fields.Key, _keys),
    (fields.Text, _texts),
    (fields.LogTail, _texts),
    (fields.JsonObject, st.dictionaries(_keys, _json_values, max_size=3)),
    (bool, st.booleans()),
    (fields.Flag, st.booleans()),
]


def _of(annotation: Any) -> st.SearchStrategy[Any]:
    """Values of one field's type; a type that is not known here is an error, so no field is forgotten."""
    for known, strategy in _OF_FIELD:
        if annotation == known:
            return strategy
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (typing.Union, types.UnionType):
        return st.one_of(*(_of(argument) for argument in arguments))
    if annotation is type(None):
        return st.none()
    if origin is list:
        return st.lists(_of(arguments[0]), max_size=4)
    if origin is typing.Literal:
        return st.sampled_from(arguments)
    if origin is dict:
        return st.dictionaries(_of(arguments[0]), _of(arguments[1]), max_size=3)
    if isinstance(annotation, type) and issubclass(annotation, StrEnum):
        return st.sampled_from(list(annotation))
    if isinstance(annotation, type) and issubclass(annotation, Record):
        return records(annotation)
    if origin is typing.Annotated:  # a number with limits of its own
        return st.integers(1, INT64_MAX)
    raise TypeError(f"no strategy for {annotation}")


def _fields_of(model: type[Record], leave_out: tuple[str, ...] = ()) -> dict[str, st.SearchStrategy[Any]]:
    hints = typing.get_type_hints(model, include_extras=True)
    return {name: _of(hints[name]) for name in model.model_fields if name not in leave_out}


@cache
def records(model: type[Record]) -> st.SearchStrategy[Any]:
    """Valid instances of a part of the record."""
    strategy = st.builds(model, **_fields_of(model, leave_out=("phases_ns",)))
    if model is ColdStart:
        return strategy | strategy.flatmap(_with_phases)
    return strategy


@st.composite
def _with_phases(draw: st.DrawFn, cold_start: ColdStart) -> ColdStart:
    """Phases must add up to the first call."""
    dynamo_ns = draw(st.integers(0, INT64_MAX // 2))
    other_ns = draw(st.integers(0, INT64_MAX // 2))
    parts = {"first_call_ns": dynamo_ns + other_ns, "phases_ns": {"dynamo": dynamo_ns, "other": other_ns}}
    return ColdStart(**(cold_start.model_dump() | parts))


@cache
def _parts_of_trials() -> st.SearchStrategy[dict[str, Any]]:
    """Made once: building a strategy takes longer than drawing from it."""
    return st.fixed_dictionaries(_fields_of(Trial, leave_out=("schema_", "status", "failure")))


@st.composite
def trials(draw: st.DrawFn) -> Trial:
    """Valid trials, of both statuses; every optional field is sometimes missing."""
    parts = draw(_parts_of_trials())
    status = draw(st.sampled_from(Status))
    parts["failure"] = draw(records(Failure)) if status is Status.FAILED else None
    headline = _fit_timing(parts)
    if status is Status.OK and not parts[f"{headline.value}_ns"] and parts["summary"] is None:
        parts["summary"] = draw(records(Summary))
    if parts["ended_at"] is not None:
        parts["started_at"], parts["ended_at"] = sorted((parts["started_at"], parts["ended_at"]))
    return Trial(status=status, **parts)


def _fit_timing(parts: dict[str, Any]) -> Headline:
    """Empty what the timing leaves no room for."""
    timing: Timing | None = parts["timing"]
    empty = set() if timing is None else {"host_samples_ns", "control_host_samples_ns"}
    headline = Headline.SAMPLES if timing is None else timing.headline
    if headline is Headline.SAMPLES:
        empty |= {*DEVICE_TIMES, *CONTROL_TIMES}
    else:
        empty |= {"samples_ns", "control_samples_ns"}
    parts |= {name: [] for name in empty}
    return headline
