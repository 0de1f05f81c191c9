"""Our own record, one JSON object per line: `export --format jsonl` writes it, `import` reads it back."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import BinaryIO

from db.fields import Record
from db.interchange.files import InputFile
from db.interchange.options import ImportOptions
from db.quick_trials import SETTING, read_quickly
from db.records import Build, Machine, Strategy, Trial, Workload, parse_trial

# How a line begins that `Trial.to_json` wrote: only flat values, and moments in UTC, before the workload.
_HEAD = re.compile(
    rb'\{(?:"(?:schema|trial_id|run_id|suite|label)":(?:"[^"\\]*"|null),'
    rb'|"(?:started|ended)_at":(?:"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,6})?Z"|null),)+'
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


class Lines:
    """Reads lines of one file; a setting that was validated once is shared by all that repeat its bytes."""

    def __init__(self) -> None:
        self._settings: dict[bytes, dict[str, Record]] = {}

    def trial(self, line: bytes, where: str) -> Trial:
        """The line's record, or what `db.quick_trials` makes of it, to be stored. Raises RecordError.

        Lines that are written otherwise, or are wrong, are read by pydantic.
        """
        head = _HEAD.match(line)
        tail = line.find(_TAIL, head.end()) if head else -1
        if head is not None and tail >= 0:
            with suppress(ValueError):
                setting = self._setting(line[head.end() : tail])
                # The head ends within the outermost object and the setting is whole: the rest is that object
                # without these four, and may not have them again.
                quick: Trial = read_quickly(line, head[0] + line[tail + 1 :], setting)
                return quick
        return parse_trial(line, where=where)

    def _setting(self, raw: bytes) -> dict[str, Record]:
        found = self._settings.get(raw)
        if found is None:
            if len(self._settings) >= _REMEMBERED_SETTINGS:
                self._settings.clear()
            setting = _Setting.model_validate_json(b"{%b}" % raw)
            found = self._settings[raw] = {name: getattr(setting, name) for name in SETTING}
        return found


def read(file: InputFile, _options: ImportOptions) -> Iterator[Trial]:
    """Every line's trial, exactly as it was written; the record says everything, so no option applies.

    Raises RecordError naming file, line and field.
    """
    return _each_line(file, lambda line, where: parse_trial(line, where=where))


def read_to_store(file: InputFile) -> Iterator[Trial]:
    """As `read`, several times as fast; what it yields is for the store (see `db.quick_trials`)."""
    return _each_line(file, Lines().trial)


def _each_line(file: InputFile, trial: Callable[[bytes, str], Trial]) -> Iterator[Trial]:
    for number, line in file.lines():
        if line.strip():
            yield trial(line, f"{file.shown}, line {number}")


def write(trials: Iterable[Trial], output: BinaryIO) -> int:
    """One line per trial, UTF-8; returns how many."""
    return write_lines((trial.to_json().encode() for trial in trials), output)


def write_lines(lines: Iterable[bytes], output: BinaryIO) -> int:
    """Every line with its end; returns how many."""
    count = 0
    for line in lines:
        output.write(line + b"\n")
        count += 1
    return count
