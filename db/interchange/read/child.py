"""The process that reads foreign files: what a file does to it, it does to nobody else.

It has limits of memory and of processor time, no secret in its environment, no database and no network to
speak to. Requests and answers are lines of JSON; what it sends is checked again where it arrives.
"""

from __future__ import annotations

import json
import os
import resource
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

from pydantic import TypeAdapter

from compilewatch.db.errors import CompilewatchError, RecordError, one_line
from compilewatch.db.interchange.files.foreign_trials import MissingFactError
from compilewatch.db.interchange.files.opening import MAX_LINE_BYTES, input_files, uploaded_files
from compilewatch.db.interchange.files.options import ImportOptions
from compilewatch.db.interchange.read.detection import recognised_files
from compilewatch.db.interchange.read.reading import Recognised, all_trials, unused
from compilewatch.db.interchange.sources.csv_mapping import UnmappedError

OPTIONS = TypeAdapter(ImportOptions)
_NICENESS = 5
_WIDE = 1024


def main() -> None:
    """Answer requests until there is none."""
    os.nice(_NICENESS)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    requests, answers = sys.stdin.buffer, sys.stdout.buffer
    while line := requests.readline():
        request = json.loads(line)
        limit = request["memory_bytes"]
        resource.setrlimit(resource.RLIMIT_AS, (limit, resource.getrlimit(resource.RLIMIT_AS)[1]))
        for answer in _answers(request, requests):
            answers.write(answer + b"\n")
        answers.flush()


def _answers(request: dict[str, Any], stream: BinaryIO) -> Iterator[bytes]:
    options: ImportOptions = OPTIONS.validate_python(request["options"])
    uploads = {name: stream.read(size) for name, size in request["uploads"]}
    path = request["path"]
    below = None if request["below"] is None else Path(request["below"])
    files = partial(uploaded_files, path, uploads) if uploads else partial(input_files, Path(path), below)
    recognised: Recognised = []
    more_time = partial(_more_time, request["cpu_s"])
    more_time()
    try:
        recognised += recognised_files(files, request["format"], options.notes, below is not None)
        yield _event("formats", list(dict.fromkeys(str(name) for _, name in recognised)))
        yield from _trials(recognised, options, more_time)
        yield _event("end", {"unused": unused(recognised, options), "notes": options.notes})
    except CompilewatchError as error:
        yield _event("error", _told(error, recognised, options))
    except MemoryError:
        recognised.clear()
        options.notes.clear()
        yield _event("memory", None)
    except Exception as error:  # noqa: BLE001 - a reader's defect is one sentence, and other files come in
        why = one_line(f"{type(error).__name__}: {error}")
        told = RecordError(f"{one_line(path)}: cannot be read ({why}).", "Check that the file is whole.")
        yield _event("error", _told(told, [], options))


def _trials(recognised: Recognised, options: ImportOptions, more_time: Callable[[], None]) -> Iterator[bytes]:
    told: tuple[str, str] | None = None
    for number, trial in enumerate(all_trials(recognised, options)):
        file = options.undated.get(trial.run_id)
        if file is not None and told != (trial.run_id, file):
            told = trial.run_id, file
            yield _event("undated", told)
        record = trial.to_json().encode()
        if len(record) > MAX_LINE_BYTES:
            raise RecordError(
                f"{recognised[0][0].shown}: a result has more than {MAX_LINE_BYTES // 2**20} MiB.",
                "Keep fewer samples of it.",
            )
        if number % _WIDE == 0:
            more_time()
        yield record


def _more_time(seconds: int) -> None:
    """As many seconds of processor time again from now on."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    limit = int(used.ru_utime + used.ru_stime) + seconds
    resource.setrlimit(resource.RLIMIT_CPU, (limit, resource.getrlimit(resource.RLIMIT_CPU)[1]))


def _told(error: CompilewatchError, recognised: Recognised, options: ImportOptions) -> dict[str, Any]:
    told: dict[str, Any] = {
        "kind": type(error).__name__,
        "message": error.message,
        "next_step": error.next_step,
        "notes": options.notes,
    }
    if isinstance(error, MissingFactError):
        # What is missing may stand in a column that nobody has named.
        told |= {"fields": list(error.fields), "unused": unused(recognised, options)}
    if isinstance(error, UnmappedError):
        told |= {"columns": dict(error.columns)}
    return told


def _event(name: str, content: object) -> bytes:
    return json.dumps({"event": name, "content": content}).encode()


if __name__ == "__main__":
    main()
