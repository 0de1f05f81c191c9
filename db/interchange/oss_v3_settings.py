"""What tells cases of OSS v3 records apart beyond model, mode, dtype and backend: `extra_info` and `inputs`.

Each record tells its own, whatever else stands in its file: whole numbers are sizes, for the workload's
shape; other short values stand in brackets behind the workload's name. Left out is what speaks of one
execution or of the code: times, identifiers, versions, places and words for people.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from db.fields import INT64_MAX
from db.interchange.fields import Fields

_LONGEST_VALUE = 60
_LONGEST_NAME = 200
# What `oss_v3` reads into other fields, and what runners tell already.
_READ = {
    *("device", "batch_size", "dynamic_shapes", "is_dynamic", "inductor_compile_mode", "compile_mode"),
    *("app_type", "arch"),
}
_NO_SETTINGS = {
    *("id", "ids", "uuid", "job", "workflow", "attempt", "url", "link", "pid"),
    *("host", "hostname", "port", "user"),
    *("time", "times", "timestamp", "date", "datetime", "started", "finished"),
    *("duration", "elapsed", "latency", "seconds", "throughput"),
    *("version", "versions", "commit", "sha", "hash", "branch", "revision", "git", "repo"),
    *("path", "file", "filename", "dir", "directory", "folder", "log"),
    *("description", "comment", "note", "notes", "author", "authors", "title", "label", "tag"),
    *("seed", "repeat", "repeats", "iterations", "warmup", "rounds", "timeout"),
}  # fmt: skip
_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_WHOLE = re.compile(r"0|-?[1-9][0-9]{0,18}")
_UNSET = {"", "false", "none", "null", "[]"}


class Settings(NamedTuple):
    """`shape` for the workload, `words` for its name; `untold` are values that fit neither, as JSON."""

    shape: dict[str, int]
    words: dict[str, str]
    untold: dict[str, str]

    def named(self, name: str) -> str:
        """`name` with the words in brackets behind it."""
        described = ", ".join(f"{key}={word}" for key, word in sorted(self.words.items()))
        return f"{name}[{described}]" if described else name


def own_settings(record: Fields) -> Settings:
    """The sizes that our export writes into `model.extra_info`, beside the workload's version."""
    info = record.part("model").part("extra_info").data
    sizes = {key: _whole(str(text)) for key, text in info.items() if key != "version"}
    return Settings({key: size for key, size in sizes.items() if size is not None}, {}, {})


def settings_of(record: Fields, name: str, *, of_benchmark: bool = True) -> Settings:
    """The settings of a record of another tool, whose workload is called `name`.

    `of_benchmark` is false where `benchmark.extra_info` holds none. Words that do not fit behind the name
    are untold. Raises RecordError for a key or word that no database stores.
    """
    model, benchmark = record.part("model"), record.part("benchmark")
    parts = [("model.extra_info", model.part("extra_info"), set[str]())]
    if of_benchmark:
        parts.append(("benchmark.extra_info", benchmark.part("extra_info"), _READ))
    parts.append(("inputs", _inputs(record), set()))
    found: dict[str, tuple[str, object]] = {}
    for origin, part, read in parts:
        for key, value in _settings(part.data):
            if key not in read:
                path = f"{origin}.{key}"
                found[path if key in found else part.storable(key, key)] = path, value
    settings = _sorted_out(record, found)
    if len(settings.named(name)) <= _LONGEST_NAME:
        return settings
    words = {found[key][0]: json.dumps(word) for key, word in settings.words.items()}
    return Settings(settings.shape, {}, settings.untold | words)


def _inputs(record: Fields) -> Fields:
    """`inputs` with the settings of each one's `extra_info` beside its dtype."""
    inputs = record.part("inputs")
    flat = {
        name: {**each.data, **each.part("extra_info").data, "extra_info": None}
        for name, each in inputs.parts()
    }
    return Fields(inputs.place, flat, inputs.path)


def _settings(values: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, object]]:
    """Every value by its path, but for those whose names say that they are no settings."""
    for key, value in values.items():
        if _NO_SETTINGS.isdisjoint(word.lower() for word in _WORDS.findall(key)):
            if isinstance(value, dict):
                yield from _settings(value, f"{path}{key}.")
            else:
                yield f"{path}{key}", value


def _whole(text: str) -> int | None:
    size = int(text) if _WHOLE.fullmatch(text) else None
    return size if size is None or abs(size) <= INT64_MAX else None


def _sorted_out(record: Fields, found: Mapping[str, tuple[str, object]]) -> Settings:
    settings = Settings({}, {}, {})
    for key, (path, value) in found.items():
        text = value.strip() if isinstance(value, str) else json.dumps(value)
        if text.lower() in _UNSET:
            continue
        if (size := _whole(text)) is not None:
            settings.shape[key] = size
        elif isinstance(value, list) or len(text) > _LONGEST_VALUE:
            settings.untold[path] = text
        else:
            settings.words[key] = "true" if text == "True" else record.storable(path, text)
    return settings
