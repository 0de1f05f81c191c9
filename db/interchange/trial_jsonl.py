"""Our own record, one JSON object per line: `export --format jsonl` writes it, `import` reads it back."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO

from pydantic import ValidationError
from pydantic_core import from_json

from db.fields import Record
from db.interchange.files import InputFile
from db.interchange.options import ImportOptions
from db.records import Build, Machine, Strategy, Trial, Workload, parse_trial

# How a line begins that `Trial.to_json` wrote: only flat values before the workload.
_HEAD = re.compile(
    rb'\{(?:"(?:schema|trial_id|run_id|started_at|ended_at|suite|label)":(?:"[^"\\]*"|null),)+'
    rb'"source":\{"kind":"[a-z]+","name":"[^"\\]*"\},(?="workload":\{)'
)
_TAIL = b',"status":"'
_REMEMBERED_SETTINGS = 10_000


class _Setting(Record):
    """What many lines of a file repeat, between their head and their tail."""

    workload: Workload
    strategy: Strategy
    machine: Machine
    build: Build


class _Lines:
    """Reads lines; a setting that was validated once is shared by all lines that repeat its bytes."""

    def __init__(self) -> None:
        self._settings: dict[bytes, dict[str, Any]] = {}

    def trial(self, line: bytes, where: str) -> Trial:
        """Raises RecordError. Lines that are written otherwise, or are wrong, are read as a whole."""
        head = _HEAD.match(line)
        tail = line.find(_TAIL, head.end()) if head else -1
        if head is None or tail < 0:
            return parse_trial(line, where=where)
        try:
            setting = self._setting(line[head.end() : tail])
            # The head ends within the outermost object, and the setting is whole: the rest is that object
            # without these four. A rest that has one of them too repeats a key.
            rest = from_json(head[0] + line[tail + 1 :])
            if rest.keys().isdisjoint(setting):
                return Trial.model_validate(rest | setting)
        except (ValidationError, ValueError):
            pass
        return parse_trial(line, where=where)

    def _setting(self, raw: bytes) -> dict[str, Any]:
        found = self._settings.get(raw)
        if found is None:
            if len(self._settings) >= _REMEMBERED_SETTINGS:
                self._settings.clear()
            setting = _Setting.model_validate_json(b"{%b}" % raw)
            found = self._settings[raw] = {name: getattr(setting, name) for name in _Setting.model_fields}
        return found


def read(file: InputFile, _options: ImportOptions) -> Iterator[Trial]:
    """Every line's trial, exactly as it was written; the record says everything, so no option applies.

    Raises RecordError naming file, line and field.
    """
    lines = _Lines()
    for number, line in file.lines():
        if line.strip():
            yield lines.trial(line, f"{file.shown}, line {number}")


def write(trials: Iterable[Trial], output: BinaryIO) -> int:
    """One line per trial, UTF-8; returns how many."""
    count = 0
    for trial in trials:
        output.write(trial.to_json().encode())
        output.write(b"\n")
        count += 1
    return count
