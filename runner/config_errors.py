"""A complaint of pydantic -> one sentence that names the key and where it was written."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ValidationError

from db.errors import ConfigError
from runner.config import Settings

REFERENCE = "See compilewatch.example.toml for every key."
ENVIRONMENT = "environment"
OPTION = "option"

Location = tuple[str | int, ...]
Layers = Mapping[str, Mapping[str, Any]]

# What a value must be, by pydantic's error type; {} are filled from the error's context.
_MUST_BE = {
    "int_parsing": "a whole number",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_parsing": "a number",
    "float_type": "a number",
    "bool_parsing": "true or false",
    "bool_type": "true or false",
    "string_type": "text in quotes",
    "string_too_short": "text that is not empty",
    "tuple_type": "a list",
    "too_short": "a list with at least {min_length} entry",
    "dict_type": "a table",
    "model_type": "a table",
    "path_type": "a path in quotes",
    "greater_than_equal": "at least {ge}",
    "greater_than": "more than {gt}",
    "literal_error": "{expected}",
    "enum": "{expected}",
}


def explain(error: ValidationError, layers: Layers) -> ConfigError:
    """The first problem as a sentence. `layers` maps source names to what each says, weakest first."""
    first = error.errors(include_url=False)[0]
    loc = _written_part(first["loc"], layers)
    source = _source(loc, layers)
    others = {_written_part(other["loc"], layers) for other in error.errors()} - {loc}
    more = f" ({len(others)} more to correct)" if others else ""
    where, key = _place(loc, layers), str(loc[-1]) if loc else ""
    if first["type"] == "extra_forbidden":
        near = difflib.get_close_matches(key, _valid_keys(loc[:-1]), n=1, cutoff=0.5)
        hint = f"Did you mean {near[0]}?" if near else REFERENCE
        return ConfigError(f"{source}: there is no key {key}{where}{more}.", hint)
    if first["type"] == "missing":
        return ConfigError(f"{source}: {key} is missing{where}{more}.", REFERENCE)
    if first["type"] == "value_error":
        problem = str(first.get("ctx", {}).get("error", first["msg"]))
        return ConfigError(f"{source}: {problem}{where if loc else ''}{more}.", REFERENCE)
    in_union = len(loc) < len(first["loc"])
    wanted = (in_union and _meaning(loc)) or _wanted(first["type"], first.get("ctx", {}), loc) or first["msg"]
    return ConfigError(f"{source}: {key}{where} must be {wanted}, not {first['input']!r}{more}.", REFERENCE)


def variable_of(key: Location) -> str:
    """The environment variable that sets `key`."""
    return "COMPILEWATCH_" + "__".join(str(part) for part in key).upper()


def says(layer: Mapping[str, Any], key: Location) -> bool:
    """Whether `layer` has a value at `key`."""
    here: Any = layer
    for part in key:
        in_table = isinstance(here, Mapping) and part in here
        in_list = isinstance(here, (list, tuple)) and isinstance(part, int) and part < len(here)
        if not (in_table or in_list):
            return False
        here = here[part]
    return True


def _wanted(kind: str, context: Mapping[str, Any], loc: Location) -> str | None:
    if kind == "string_pattern_mismatch":
        return _meaning(loc) or "a name of letters, digits and . _ - + @ :"
    if kind == "tuple_type" and len(loc) == 1:
        return f"a list of tables, written [[{loc[0]}]]"
    template = _MUST_BE.get(kind)
    return template.format(**context) if template else None


def _meaning(loc: Location) -> str | None:
    """What the value at `loc` may be, for fields whose description says that."""
    model: type[BaseModel] = Settings
    keys = [part for part in loc if isinstance(part, str)]
    for table in keys[:1]:
        model = _section_of(model, table)
    field = model.model_fields.get(keys[1]) if len(keys) > 1 else None
    return field.description if field else None


def _written_part(loc: Location, layers: Layers) -> Location:
    """`loc` without pydantic's own steps, such as the branch of a union that failed."""
    for end in range(len(loc), 0, -1):
        if any(says(layer, loc[:end]) for layer in layers.values()):
            # A missing key is not written, but the table it is missing from is.
            rest = loc[end : end + 1]
            return loc[:end] + (rest if rest and _is_field(loc[:end], rest[0]) else ())
    return loc[:1]


def _is_field(table: Location, key: str | int) -> bool:
    try:
        return key in _valid_keys(table)
    except StopIteration:
        return False


def _source(loc: Location, layers: Layers) -> str:
    """Where the value at `loc` was written, the strongest source first."""
    for end in range(len(loc), 0, -1):
        for name in reversed(list(layers)):
            if says(layers[name], loc[:end]):
                if name == ENVIRONMENT:
                    return f"The environment variable {variable_of(loc)}"
                return "The command line" if name == OPTION else name
    return next((name for name in layers if name not in (ENVIRONMENT, OPTION)), "The configuration")


def _place(loc: Location, layers: Layers) -> str:
    """ " in [run]", " in [[workload]] my-model", or nothing at the top level."""
    if len(loc) < 2:
        return ""
    if not isinstance(loc[1], int):
        return f" in [{loc[0]}]"
    for layer in layers.values():
        entries = layer.get(str(loc[0]))
        if isinstance(entries, list) and loc[1] < len(entries) and isinstance(entries[loc[1]], Mapping):
            return f" in [[{loc[0]}]] {entries[loc[1]].get('name', f'number {loc[1] + 1}')}"
    return f" in [[{loc[0]}]] number {loc[1] + 1}"


def _valid_keys(loc: Location) -> list[str]:
    """Keys allowed in the table at `loc`."""
    model: type[BaseModel] = Settings
    for part in loc:
        if isinstance(part, str):
            model = _section_of(model, part)
    return list(model.model_fields)


def _section_of(model: type[BaseModel], key: str) -> type[BaseModel]:
    """The table behind field `key`: its annotation, or the element type of a list of tables."""
    annotation = model.model_fields[key].annotation
    candidates = [annotation, *getattr(annotation, "__args__", ())]
    return next(kind for kind in candidates if isinstance(kind, type) and issubclass(kind, BaseModel))
