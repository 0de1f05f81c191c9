"""Reads file, environment and options into `Settings`, and says which value came from where."""

from __future__ import annotations

import itertools
import math
import os
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_settings import EnvSettingsSource, SettingsError

from compilewatch.db.errors import ConfigError, did_you_mean, one_line
from compilewatch.db.records.fields import must_be
from compilewatch.runner.config.settings import Settings

DEFAULT_FILE = "compilewatch.toml"
FILE_VARIABLE = "COMPILEWATCH_CONFIG"
_DEEPEST = 16
# Variables of other parts: of tests, and of a recorded job, a script and a login.
_OF_TESTS = ("COMPILEWATCH_TEST_", "COMPILEWATCH_HYPOTHESIS_", "COMPILEWATCH_FUZZ_")
_NOT_SETTINGS = ("COMPILEWATCH_JOBS", "COMPILEWATCH_SCRIPT", "COMPILEWATCH_SIGN_IN")


@dataclass(frozen=True)
class Origin:
    """One setting: its dotted key, its value, and "default", a file, a variable or "option"."""

    key: str
    value: Any
    source: str


def load_settings(file: Path | None = None, *, options: Mapping[str, Any] | None = None) -> Settings:
    """The settings in force.

    `file` defaults to $COMPILEWATCH_CONFIG, then to compilewatch.toml in the working directory if there is
    one. `options` holds command-line values in the file's nesting, and wins over everything.
    Raises ConfigError when a named file is missing, not TOML, or says something that cannot be.
    """
    path = find_file(file)
    layers = _layers(path, options or {})
    merged: dict[str, Any] = {}
    for content in layers.values():
        merged = _merge(merged, content)
    try:
        settings = Settings(**merged)
    except ValidationError as error:
        raise explain(error, layers) from error
    settings._config_file = path.resolve() if path else None
    return settings


def origins(settings: Settings, *, options: Mapping[str, Any] | None = None) -> list[Origin]:
    """Where each value of `settings` came from, in the order of the file's reference."""
    layers = _layers(settings.config_file, options or {})
    values = []
    for key, value in _leaves(settings):
        source = next((name for name in reversed(list(layers)) if _has_value(layers[name], key)), "default")
        values.append(Origin(".".join(key), value, _variable_of(key) if source == ENVIRONMENT else source))
    return values


def find_file(file: Path | None) -> Path | None:
    """The configuration file to read, or None. Raises ConfigError when a named one is not there."""
    named = file or (Path(os.environ[FILE_VARIABLE]) if os.environ.get(FILE_VARIABLE) else None)
    if named is None:
        default = Path(DEFAULT_FILE)
        return default if default.is_file() else None
    if not named.is_file():
        raise ConfigError(
            f"There is no configuration file {named}.",
            f"Copy compilewatch.example.toml there, or leave --config and {FILE_VARIABLE} out.",
        )
    return named


def _layers(path: Path | None, options: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Source name -> what it says, weakest first."""
    layers: dict[str, dict[str, Any]] = {}
    if path is not None:
        layers[path.name] = _read_toml(path)
    try:
        layers[ENVIRONMENT] = _plain(EnvSettingsSource(Settings)(), "The environment")
    except RecursionError as error:
        raise _too_deep("The environment") from error
    except SettingsError as error:
        raise ConfigError(f"The environment is not valid: {error}.", "Lists and tables are JSON.") from error
    layers[_OPTION] = dict(options)
    return layers


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        return _plain(tomllib.loads(path.read_bytes().decode()), path.name)
    except RecursionError as error:
        raise _too_deep(path.name) from error
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path} is not valid TOML: {error}.", "Correct that line.") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is not UTF-8 text.", "Save it as UTF-8.") from error
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}.", "Make the file readable.") from error


def _plain(content: dict[str, Any], source: str) -> dict[str, Any]:
    """`content` as it is. Raises ConfigError where it nests deeper than `_DEEPEST`, or holds a number that is
    not finite or a NUL, which no setting, file or process can take.
    """
    waiting: list[tuple[tuple[str, ...], Any]] = [((), content)]
    while waiting:
        key, part = waiting.pop()
        where = f"{source}: {one_line('.'.join(key))}"
        if isinstance(part, float) and not math.isfinite(part):
            raise ConfigError(f"{where} is {part}.", "Write a finite number.")
        if isinstance(part, str) and "\0" in part:
            raise ConfigError(f"{where} holds a NUL character.", "Leave it out.")
        if not isinstance(part, (dict, list, tuple)):
            continue
        if len(key) == _DEEPEST:
            raise _too_deep(source)
        entries = part.items() if isinstance(part, dict) else enumerate(part, start=1)
        waiting.extend(((*key, str(name)), each) for name, each in entries)
    return content


def _too_deep(source: str) -> ConfigError:
    return ConfigError(f"{source} nests tables or lists more than {_DEEPEST} deep.", REFERENCE)


def check_variables(environment: Mapping[str, str]) -> None:
    """Raises ConfigError for a variable that reads like a setting and is none: it would change nothing."""
    known = {FILE_VARIABLE, *_NOT_SETTINGS, *(_variable_of((name,)) for name in Settings.model_fields)}
    prefix = _variable_of(("",))
    for name in sorted(environment):
        if not name.startswith(prefix) or name.startswith(_OF_TESTS) or name.split("__")[0] in known:
            continue
        settable = {*known, *(_variable_of(key) for key, _ in _leaves(Settings()))}
        raise ConfigError(
            f"The environment variable {one_line(name)} sets nothing.",
            did_you_mean(name, sorted(settable), "`compilewatch config show` lists what can be set."),
        )


def _merge(base: dict[str, Any], stronger: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for key, value in stronger.items():
        known = merged.get(key)
        merged[key] = (
            _merge(known, value) if isinstance(known, dict) and isinstance(value, Mapping) else value
        )
    return merged


def _leaves(section: BaseModel, prefix: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name in type(section).model_fields:
        value = getattr(section, name)
        if isinstance(value, BaseModel):
            yield from _leaves(value, (*prefix, name))
        else:
            yield (*prefix, name), value


REFERENCE = "See compilewatch.example.toml for every key."
_SECRET_TABLES = ("auth", "channel", "database_url", "notify")
_LONGEST = 1_000
ENVIRONMENT = "environment"
_OPTION = "option"

Location = tuple[str | int, ...]
_Layers = Mapping[str, Mapping[str, Any]]

_ABSENT = object()
# As a value is written in TOML.
_IN_TOML = {"string_type": "text in quotes", "path_type": "a path in quotes"}


def explain(error: ValidationError, layers: _Layers) -> ConfigError:
    """The first problem as a sentence. `layers` maps source names to what each says, weakest first."""
    # Keys and values may hold anything, line breaks among it.
    problem = _explained(error, layers)
    return ConfigError(one_line(problem.message, _LONGEST), problem.next_step)


def _explained(error: ValidationError, layers: _Layers) -> ConfigError:
    problems = error.errors(include_url=False)
    # A misspelt key may leave a required one missing: the spelling is the problem then.
    first = next((each for each in problems if each["type"] == "extra_forbidden"), problems[0])
    loc = _written_part(first["loc"], layers)
    source = _source(loc, layers)
    others = {_written_part(other["loc"], layers) for other in problems} - {loc}
    more = f" ({len(others)} more to correct)" if others else ""
    where, key = _place(loc[:-1], layers), str(loc[-1]) if loc else ""
    if len(loc) > 1 and isinstance(loc[-1], int):
        key = f"{loc[-2]} number {loc[-1] + 1}"
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
    contrast = "" if loc[0] in _SECRET_TABLES else f", not {first['input']!r}"
    return ConfigError(f"{source}: {key}{where} must be {wanted}{contrast}{more}.", REFERENCE)


def _variable_of(key: Location) -> str:
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


def _has_value(layer: Mapping[str, Any], key: Location) -> bool:
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


def _written_part(loc: Location, layers: _Layers) -> Location:
    """`loc` without pydantic's own steps, such as the branch of a union that failed."""
    for end in range(len(loc), 0, -1):
        if any(_has_value(layer, loc[:end]) for layer in layers.values()):
            # A missing key is not written, but the table it is missing from is.
            rest = loc[end : end + 1]
            return loc[:end] + (rest if rest and _is_field(loc[:end], rest[0]) else ())
    return loc[:1]


def _is_field(table: Location, key: str | int) -> bool:
    try:
        return key in _valid_keys(table)
    except (StopIteration, KeyError):
        return False


def _source(loc: Location, layers: _Layers) -> str:
    """Where the value at `loc` was written, the strongest source first."""
    for end in range(len(loc), 0, -1):
        for name in reversed(list(layers)):
            if _has_value(layers[name], loc[:end]):
                if name == ENVIRONMENT:
                    return f"The environment variable {_variable_of(loc)}"
                return "The command line" if name == _OPTION else name
    return next((name for name in layers if name not in (ENVIRONMENT, _OPTION)), "The configuration")


def _place(table: Location, layers: _Layers) -> str:
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
