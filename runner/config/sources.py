"""Reads file, environment and options into `Settings`, and says which value came from where."""

from __future__ import annotations

import math
import os
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_settings import EnvSettingsSource, SettingsError

from compilewatch.db.errors import ConfigError, did_you_mean, one_line
from compilewatch.runner.config.explaining import (
    ENVIRONMENT,
    OPTION,
    REFERENCE,
    explain,
    has_value,
    variable_of,
)
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
        source = next((name for name in reversed(list(layers)) if has_value(layers[name], key)), "default")
        values.append(Origin(".".join(key), value, variable_of(key) if source == ENVIRONMENT else source))
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
    layers[OPTION] = dict(options)
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
    known = {FILE_VARIABLE, *_NOT_SETTINGS, *(variable_of((name,)) for name in Settings.model_fields)}
    prefix = variable_of(("",))
    for name in sorted(environment):
        if not name.startswith(prefix) or name.startswith(_OF_TESTS) or name.split("__")[0] in known:
            continue
        settable = {*known, *(variable_of(key) for key, _ in _leaves(Settings()))}
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
