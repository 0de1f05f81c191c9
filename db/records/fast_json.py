"""Trial records read from JSON several times as fast as pydantic does, for files of many.

msgspec checks each value against the same fields, bounds and validators: its types are derived from the
models of `db.records.trial`, and what cannot be derived is an error when this module is imported. What many
lines
repeat is checked once. Arrays of samples go from text to numpy, those of many lines together. What is refused
here, or may be read otherwise (escapes, offsets from UTC), is left to pydantic, which says what is wrong.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise
from operator import attrgetter
from typing import Any

import msgspec
import numpy as np
from msgspec import Raw
from numpy.typing import NDArray
from pydantic import AfterValidator, BeforeValidator
from pydantic.fields import FieldInfo

from db.records import fields
from db.records.fields import Record
from db.records.trial import Samples, Trial

# What lines of a file repeat: read by pydantic, so that their identities are computed as everywhere.
_SETTING = ("workload", "strategy", "machine", "build")
# What trials of one case mostly agree in.
_OFTEN_EQUAL = ("compiler", "numerics")
_ARRAYS = tuple(name for name, info in Trial.model_fields.items() if info.annotation == Samples)
# How many parts of a kind are remembered, and the bytes of the largest: a file may repeat nothing.
_REMEMBERED = 2_000
_LARGEST_REMEMBERED = 16_384
# Arrays of JSON, joined, become numbers with a comma after each; what belongs to neither becomes an x.
_AS_NUMBERS = bytes(
    code if code in b"0123456789," else {ord("["): ord(" "), ord("]"): ord(",")}.get(code, ord("x"))
    for code in range(256)
)
# numpy reads what exceeds int64 as its largest value; no duration in ns comes near either.
_TOO_LARGE = 10**18
_BOUNDS = ("ge", "le", "gt", "lt", "min_length", "max_length")
# A text without an escape holds neither NUL nor surrogate; moments are read from text alone. Nothing to do.
_NEEDLESS = (fields.WITHOUT_NUL, fields.repaired, fields.moment_text)


def _limited(base: Any, metadata: typing.Iterable[Any]) -> Any:
    """`base` with the bounds that pydantic's metadata sets."""
    limits: dict[str, Any] = {}
    for entry in metadata:
        if isinstance(entry, FieldInfo):
            return _limited(_limited(base, entry.metadata), ())
        if isinstance(entry, AfterValidator | BeforeValidator):
            if entry.func is fields.aware_utc:
                limits["tz"] = True
            elif entry.func not in _NEEDLESS:
                raise TypeError(f"no quick check for {entry.func}")
            continue
        values = (
            vars(entry) if hasattr(entry, "__dict__") else {n: getattr(entry, n) for n in entry.__slots__}
        )
        for name, value in values.items():
            if name in _BOUNDS or (name == "pattern" and value not in _NEEDLESS):
                limits[name] = value
            elif name not in ("pattern", "allow_inf_nan", "strict") and value is not None:
                raise TypeError(f"no quick check for {entry}")
    return typing.Annotated[base, msgspec.Meta(**limits)] if limits else base


def _type(annotation: Any) -> Any:
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        return _limited(_type(arguments[0]), arguments[1:])
    if origin in (typing.Union, types.UnionType):
        return typing.Union[tuple(_type(argument) for argument in arguments)]  # noqa: UP007
    if origin is list:
        return list[_type(arguments[0])]  # type: ignore[misc]
    if origin is dict:
        return dict[_type(arguments[0]), _type(arguments[1])]  # type: ignore[misc]
    if isinstance(annotation, type) and issubclass(annotation, Record):
        return _struct(annotation)
    return annotation


def _checks(model: type[Record]) -> list[Any]:
    """The validators of `model` as a whole."""
    decorators = model.__pydantic_decorators__
    if decorators.field_validators or decorators.root_validators or decorators.validators:
        raise TypeError(f"no quick check for the validators of {model}")
    return [decorator.func for decorator in decorators.model_validators.values()]


def _struct(
    model: type[Record],
    *more: tuple[str, Any, Any],
    leave_out: typing.Container[str] = (),
    checked: bool = True,
) -> Any:
    """A struct with the fields of `model`, and its validators where it is to be `checked` at once."""
    checks = _checks(model) if checked else []

    def check(self: Any) -> None:
        for each in checks:
            each(self)

    known = model.model_fields.items()
    defined = [_field(name, info) for name, info in known if name not in leave_out]
    return msgspec.defstruct(
        model.__name__,
        [*defined, *more],
        namespace={"__post_init__": check} if checks else {},
        forbid_unknown_fields=True,
        kw_only=True,  # so that the order of the fields, and of the JSON that is stored, is the model's
        omit_defaults=True,
        gc=False,
    )


def _field(name: str, info: FieldInfo) -> tuple[Any, ...]:
    kind = _limited(_type(info.annotation), info.metadata)
    if info.is_required():
        return (name, kind)
    alias = info.alias or name
    if info.default in ([], {}):
        return (name, kind, msgspec.field(default_factory=type(info.default), name=alias))
    return (name, kind, msgspec.field(default=info.default, name=alias))


_LATER = (*_SETTING, *_OFTEN_EQUAL, *_ARRAYS)
_AS_TEXT: tuple[tuple[str, Any, Any], ...] = (
    *((name, Raw, msgspec.NODEFAULT) for name in _SETTING),
    *((name, Raw, Raw(b"null")) for name in _OFTEN_EQUAL),
    *((name, Raw, Raw(b"[]")) for name in _ARRAYS),
)
# A trial whose parts named in `_LATER` are text at first. Of a part told twice the first is not looked into.
_FAST = _struct(Trial, *_AS_TEXT, leave_out=_LATER, checked=False)
_TRIAL_CHECKS = _checks(Trial)
_decode_fast = msgspec.json.Decoder(_FAST).decode
_encoder = msgspec.json.Encoder()
_setting_of, _often_equal_of = attrgetter(*_SETTING), attrgetter(*_OFTEN_EQUAL)
_arrays_of = attrgetter(*_ARRAYS)


def _reader_of(name: str) -> Callable[[bytes], Any]:
    """Reads the part `name` of a trial from JSON. Raises ValueError where that is wrong."""
    if name in _SETTING:
        model: type[Record] = Trial.model_fields[name].annotation  # type: ignore[assignment]
        return model.model_validate_json
    return msgspec.json.Decoder(_type(Trial.model_fields[name].annotation)).decode


class _Shared:
    """Some parts of trials by their JSON: those that are equal are the same objects, checked once."""

    def __init__(self, names: Sequence[str]) -> None:
        self._readers = [_reader_of(name) for name in names]
        self._known: dict[bytes, tuple[Any, ...]] = {}

    def parts(self, texts: Sequence[Raw]) -> tuple[Any, ...]:
        """What each text says. Raises ValueError where one is wrong."""
        # Unambiguous: an object, or null, of JSON says where it ends.
        together = b"".join(texts)
        parts = self._known.get(together)
        if parts is None:
            parts = tuple([read(bytes(text)) for read, text in zip(self._readers, texts, strict=True)])
            if len(together) <= _LARGEST_REMEMBERED:
                if len(self._known) >= _REMEMBERED:
                    self._known.clear()
                self._known[together] = parts
        return parts


class QuickReader:
    """Reads lines of one file."""

    def __init__(self) -> None:
        self._settings, self._often_equal = _Shared(_SETTING), _Shared(_OFTEN_EQUAL)

    def read(self, lines: Sequence[bytes]) -> list[Any]:
        """What each line says, with the attributes of a `Trial` and to be stored; None where only pydantic
        may read it. Arrays are int64 of numpy, or an empty list.
        """
        trials = [self._decoded(line) for line in lines]
        together = _take_arrays([trial for trial in trials if trial is not None])
        return [
            trial if trial is not None and (together or _take_arrays([trial])) and _is_whole(trial) else None
            for trial in trials
        ]

    def _decoded(self, line: bytes) -> Any:
        # Looking for one character takes a tenth of the time of looking for two.
        if b"\\" in line and b"\\u" in line:
            return None
        try:
            if not line.isascii():
                line.decode()  # msgspec does not look into what stays text
            trial = _decode_fast(line)
            setting = self._settings.parts(_setting_of(trial))
            trial.workload, trial.strategy, trial.machine, trial.build = setting
            trial.compiler, trial.numerics = self._often_equal.parts(_often_equal_of(trial))
        except (msgspec.MsgspecError, ValueError, RecursionError):
            return None
        return trial


def _is_whole(trial: Any) -> bool:
    """Whether the parts of `trial` fit each other."""
    try:
        for check in _TRIAL_CHECKS:
            check(trial)
    except ValueError:
        return False
    return True


def _take_arrays(trials: Sequence[Any]) -> bool:
    """Put arrays where their text was; False, with nothing changed, where one holds more than plain whole
    numbers, or less."""
    texts = [_arrays_of(trial) for trial in trials]
    filled = [text for arrays in texts for text in arrays if len(text) > 2 or bytes(text) != b"[]"]
    together = b"".join(filled)
    numbers = together.translate(_AS_NUMBERS)
    if b"x" in numbers or together.count(b"[") != len(filled):
        return False
    lengths, start = [], 0
    for text in filled:
        if together[start] != ord("["):
            return False
        end = start + len(text)
        lengths.append(numbers.count(b",", start, end))
        start = end
    values = np.fromstring(numbers[:-1], dtype=np.int64, sep=",") if filled else np.empty(0, np.int64)
    if filled and (values.max() >= _TOO_LARGE or values.min() < 1):
        return False
    each = iter([values[start:end] for start, end in pairwise(accumulate(lengths, initial=0))])
    for trial, arrays in zip(trials, texts, strict=True):
        for name, text in zip(_ARRAYS, arrays, strict=True):
            setattr(trial, name, next(each) if len(text) > 2 else [])
    return True


def parts_json(parts: Sequence[Any]) -> list[str]:
    """Parts of trials as JSON, without what has its default."""
    if all(isinstance(part, msgspec.Struct) for part in parts):
        # One call for all: JSON holds no line break.
        return _encoder.encode_lines(parts).decode().split("\n")[:-1]
    return [
        _encoder.encode(part).decode()
        if isinstance(part, msgspec.Struct)
        else part.model_dump_json(exclude_defaults=True)
        for part in parts
    ]


def whole(trial: Any) -> Trial:
    """A record, whichever way it was read."""
    if isinstance(trial, Trial):
        return trial
    values = {name: getattr(trial, name) for name in Trial.model_fields}
    return Trial.model_validate_json(msgspec.json.encode(values, enc_hook=_as_json))


def _as_json(part: Record | NDArray[Any]) -> Any:
    return Raw(part.model_dump_json().encode()) if isinstance(part, Record) else part.tolist()
