"""Trial records read from JSON several times as fast as pydantic does, for files of many.

msgspec checks each value against the same fields, bounds and validators: its types are derived from the
models of `db.records`, and what cannot be derived is an error when this module is imported. What it refuses,
or may read otherwise (escapes, offsets from UTC), is left to pydantic, which says what is wrong.
"""

from __future__ import annotations

import types
import typing
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType
from pydantic import AfterValidator, BeforeValidator
from pydantic.fields import FieldInfo

from db import fields
from db.fields import Record
from db.records import Build, Machine, Strategy, Trial, Workload

# What lines of a file repeat is validated by pydantic once and shared; see `read_quickly`.
SETTING = {"workload": Workload, "strategy": Strategy, "machine": Machine, "build": Build}
_BOUNDS = ("ge", "le", "gt", "lt", "min_length", "max_length")
# Where the text holds no escape it holds neither NUL nor surrogate, and these have nothing to do.
_NEEDLESS = (fields.WITHOUT_NUL, fields.repaired)


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
        told = vars(entry) if hasattr(entry, "__dict__") else {n: getattr(entry, n) for n in entry.__slots__}
        for name, value in told.items():
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


def _struct(model: type[Record], *more: tuple[str, Any, Any], leave_out: typing.Container[str] = ()) -> Any:
    """A struct with the fields and the validators of `model`."""
    decorators = model.__pydantic_decorators__
    if decorators.field_validators or decorators.root_validators or decorators.validators:
        raise TypeError(f"no quick check for the validators of {model}")
    checks = [found.func for found in decorators.model_validators.values()]

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


# Beside a trial's own fields: what is shared, and the line itself. None of these is read from JSON.
_QUICK = _struct(
    Trial,
    *((name, UnsetType, UNSET) for name in (*SETTING, "line")),
    leave_out=SETTING,
)
_decoder = msgspec.json.Decoder(_QUICK)
_encoder = msgspec.json.Encoder()


def read_quickly(line: bytes, rest: bytes, setting: dict[str, Record]) -> Any:
    """The trial that `line` says, `rest` being it without its `setting`: with the attributes of a `Trial`.

    Raises ValueError where only pydantic may read it.
    """
    if b"\\u" in rest:
        raise ValueError("escaped characters are left to pydantic")
    try:
        quick = _decoder.decode(rest)
    except msgspec.MsgspecError as error:
        raise ValueError(str(error)) from error
    for name, part in setting.items():
        setattr(quick, name, part)
    quick.line = line
    return quick


def part_json(part: Any) -> str:
    """A part of a trial as JSON, without what has its default."""
    if isinstance(part, msgspec.Struct):
        return _encoder.encode(part).decode()
    text: str = part.model_dump_json(exclude_defaults=True)
    return text


def whole(trial: Any) -> Trial:
    """A record, whichever way it was read."""
    return trial if isinstance(trial, Trial) else Trial.model_validate_json(trial.line)
