"""A complaint of pydantic -> one sentence that names the key and where it was written."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any, get_args, get_origin

from pydantic import BaseModel, ValidationError

from compilewatch.db.errors import ConfigError, did_you_mean, one_line
from compilewatch.db.records.validation import must_be
from compilewatch.runner.config.settings import Settings

REFERENCE = "See compilewatch.example.toml for every key."
SECRET_TABLES = ("auth", "channel", "database_url", "notify")
_LONGEST = 1_000
ENVIRONMENT = "environment"
OPTION = "option"

Location = tuple[str | int, ...]
Layers = Mapping[str, Mapping[str, Any]]

_ABSENT = object()
# As a value is written in TOML.
_IN_TOML = {"string_type": "text in quotes", "path_type": "a path in quotes"}


def explain(error: ValidationError, layers: Layers) -> ConfigError:
    """The first problem as a sentence. `layers` maps source names to what each says, weakest first."""
    # Keys and values may hold anything, line breaks among it.
    problem = _explained(error, layers)
    return ConfigError(one_line(problem.message, _LONGEST), problem.next_step)


def _explained(error: ValidationError, layers: Layers) -> ConfigError:
    problems = error.errors(include_url=False)
    # A misspelt key may leave a required one missing: the spelling is the problem then.
    first = next((each for each in problems if each["type"] == "extra_forbidden"), problems[0])
    loc = _written_part(first["loc"], layers)
    source = _source(loc, layers)
    others = {_written_part(other["loc"], layers) for other in problems} - {loc}
    more = f" ({len(others)} more to correct)" if others else ""
    where, key = _place(loc[:-1], layers), str(loc[-1]) if loc else ""
    if first["type"] == "extra_forbidden":
        hint = did_you_mean(key, _valid_keys(loc[:-1]), REFERENCE)
        return ConfigError(f"{source}: there is no key {key}{where}{more}.", hint)
    if first["type"] == "missing":
        return ConfigError(f"{source}: {key} is missing{where}{more}.", REFERENCE)
    if first["type"] == "value_error":
        problem = str(first.get("ctx", {}).get("error", first["msg"]))
        is_table = any(isinstance(_value(layer, loc), Mapping) for layer in layers.values())
        place = _place(loc, layers) if is_table else where
        return ConfigError(f"{source}: {problem}{place}{more}.", REFERENCE)
    in_union = len(loc) < len(first["loc"])
    wanted = (in_union and _meaning(loc)) or _wanted(first["type"], first.get("ctx", {}), loc) or first["msg"]
    contrast = "" if loc[0] in SECRET_TABLES else f", not {first['input']!r}"
    return ConfigError(f"{source}: {key}{where} must be {wanted}{contrast}{more}.", REFERENCE)


def variable_of(key: Location) -> str:
    """The environment variable that sets `key`."""
    return "COMPILEWATCH_" + "__".join(str(part) for part in key).upper()


def _value(layer: Mapping[str, Any], key: Location) -> Any:
    """What `layer` has at `key`; `_ABSENT` where it has nothing."""
    here: Any = layer
    for part in key:
        in_table = isinstance(here, Mapping) and part in here
        in_list = isinstance(here, (list, tuple)) and isinstance(part, int) and part < len(here)
        if not (in_table or in_list):
            return _ABSENT
        here = here[part]
    return here


def has_value(layer: Mapping[str, Any], key: Location) -> bool:
    """Whether `layer` has a value at `key`."""
    return _value(layer, key) is not _ABSENT


def _wanted(kind: str, context: Mapping[str, Any], loc: Location) -> str | None:
    if kind == "string_pattern_mismatch":
        return _meaning(loc) or "a name of letters, digits and . _ - + @ :"
    if kind == "tuple_type" and len(loc) == 1:
        return f"a list of tables, written [[{loc[0]}]]"
    return _IN_TOML.get(kind) or must_be(kind, context)


def _meaning(loc: Location) -> str | None:
    """What the value at `loc` may be, for fields whose description says that."""
    keys = [part for part in loc if isinstance(part, str)]
    field = _section_of(Settings, keys[0]).model_fields.get(keys[1]) if len(keys) > 1 else None
    return " ".join(field.description.split()) if field and field.description else None


def _written_part(loc: Location, layers: Layers) -> Location:
    """`loc` without pydantic's own steps, such as the branch of a union that failed."""
    for end in range(len(loc), 0, -1):
        if any(has_value(layer, loc[:end]) for layer in layers.values()):
            # A missing key is not written, but the table it is missing from is.
            rest = loc[end : end + 1]
            return loc[:end] + (rest if rest and _is_field(loc[:end], rest[0]) else ())
    return loc[:1]


def _is_field(table: Location, key: str | int) -> bool:
    try:
        return key in _valid_keys(table)
    except (StopIteration, KeyError):
        return False


def _source(loc: Location, layers: Layers) -> str:
    """Where the value at `loc` was written, the strongest source first."""
    for end in range(len(loc), 0, -1):
        for name in reversed(list(layers)):
            if has_value(layers[name], loc[:end]):
                if name == ENVIRONMENT:
                    return f"The environment variable {variable_of(loc)}"
                return "The command line" if name == OPTION else name
    return next((name for name in layers if name not in (ENVIRONMENT, OPTION)), "The configuration")


def _place(table: Location, layers: Layers) -> str:
    """ " in [policy.history]", " in [[workload]] my-model", or nothing for the top level."""
    if not table:
        return ""
    names = [str(part) for part in itertools.takewhile(lambda part: isinstance(part, str), table)]
    if len(names) == len(table):
        return f" in [{'.'.join(names)}]"
    entry, number = table[: len(names) + 1], int(table[len(names)])
    tables = (_value(layer, entry) for layer in layers.values())
    called = next((each.get("name") for each in tables if isinstance(each, Mapping)), None)
    return f" in [[{'.'.join(names)}]] {called or f'number {number + 1}'}"


def _valid_keys(loc: Location) -> list[str]:
    """Keys allowed in the table at `loc`; none are known where a table holds others by free names."""
    model: type[BaseModel] = Settings
    by_name = False
    for part in loc:
        if by_name:
            by_name = False
        elif isinstance(part, str):
            by_name = get_origin(model.model_fields[part].annotation) is dict
            model = _section_of(model, part)
    return [] if by_name else list(model.model_fields)


def _section_of(model: type[BaseModel], key: str) -> type[BaseModel]:
    """The table behind field `key`: its annotation, or the element type of a list or table of tables."""
    annotation = model.model_fields[key].annotation
    candidates = [annotation, *get_args(annotation)]
    return next(kind for kind in candidates if isinstance(kind, type) and issubclass(kind, BaseModel))
