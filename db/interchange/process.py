"""Foreign files are read in a process of their own, which has an end of its memory and of its time.

What it sends are lines of JSON, which are checked here; a file that breaks it is refused, and the next one is
read by another process.
"""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Generator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Self

from compilewatch.db.errors import CompilewatchError, ConfigError, RecordError, one_line
from compilewatch.db.interchange.files.foreign_trials import MissingFactError
from compilewatch.db.interchange.files.options import ImportOptions
from compilewatch.db.interchange.formats import Format, UnreadError
from compilewatch.db.interchange.reading import OPTIONS
from compilewatch.db.interchange.sources.csv_mapping import UnmappedError
from compilewatch.db.own_process import begin_process
from compilewatch.db.records.trial import Trial, parse_trial

MEMORY_BYTES = 512 * 2**20
"""All that the process may map, its program included: at most that is resident."""
CPU_S = 60
"""Without a further thousand results."""

_KINDS = {kind.__name__: kind for kind in (CompilewatchError, ConfigError, RecordError, UnreadError)}


@dataclass
class Read:
    """What one path holds, beside its trials; complete once they are read."""

    formats: tuple[Format, ...] = ()
    unused: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    undated: dict[str, str] = field(default_factory=dict)
    """Runs whose moment their file does not say, each with the file that is read."""


class ReadingProcess:
    """A process that reads one path after the other, begun when it is needed. Use as a context."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def trials(
        self,
        path: str,
        uploads: Mapping[str, bytes],
        format_: str,
        options: ImportOptions,
        read: Read,
        *,
        below: Path | None = None,
    ) -> Generator[Trial]:
        """The trials of `path`, or of the upload of that name; `read` takes in what else is told.

        `below` is the folder that was named instead of the path in it.

        Who does not want them all closes it: what is left of them would be taken for the next path's.

        Raises what the reader raised; RecordError where it needs too much memory or time.
        """
        whole = False
        try:
            process = self._begun()
            assert process.stdin is not None
            assert process.stdout is not None
            try:
                self._ask(process.stdin, path, uploads, format_, options, below=below)
                for line in process.stdout:
                    if line.startswith(b'{"event":'):
                        event = json.loads(line)
                        whole = event["event"] in ("end", "error")
                        if self._took(event, path, read):
                            return
                    else:
                        yield parse_trial(line, where=one_line(path))
            except BrokenPipeError:
                pass
            raise self._death(path)
        finally:
            if not whole:
                self._end()

    def _begun(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            self._process = begin_process("compilewatch.db.interchange.reading")
        return self._process

    def _ask(
        self,
        stdin: IO[bytes],
        path: str,
        uploads: Mapping[str, bytes],
        format_: str,
        options: ImportOptions,
        *,
        below: Path | None,
    ) -> None:
        request = {
            "path": path,
            "uploads": [[name, len(data)] for name, data in uploads.items()],
            "format": format_,
            "below": None if below is None else str(below),
            "options": OPTIONS.dump_python(options, mode="json", warnings=False),
            "memory_bytes": MEMORY_BYTES,
            "cpu_s": CPU_S,
        }
        stdin.write(json.dumps(request).encode() + b"\n")
        for data in uploads.values():
            stdin.write(data)
        stdin.flush()

    def _took(self, event: Mapping[str, Any], path: str, read: Read) -> bool:
        """Whether that was the last of the path. Raises what it tells."""
        content = event["content"]
        match event["event"]:
            case "formats":
                read.formats = tuple(Format(name) for name in content)
                return False
            case "undated":
                run, file = content
                read.undated[run] = file
                return False
            case "end":
                read.unused, read.notes = content["unused"], tuple(content["notes"])
                return True
            case "error":
                read.notes = tuple(content["notes"])
                raise self._error(content, read)
        raise _too_much_memory(path)

    @staticmethod
    def _error(answer: Mapping[str, Any], read: Read) -> CompilewatchError:
        message, next_step = answer["message"], answer["next_step"]
        if "fields" in answer:
            read.unused = answer["unused"]
            return MissingFactError(message, next_step, tuple(answer["fields"]))
        if "columns" in answer:
            return UnmappedError(message, next_step, answer["columns"])
        return _KINDS.get(answer["kind"], RecordError)(message, next_step)

    def _death(self, path: str) -> CompilewatchError:
        """Why the process is no more."""
        assert self._process is not None
        code = self._process.wait()
        if code == -signal.SIGXCPU:
            return RecordError(
                f"{one_line(path)}: reading it takes over {CPU_S} s of processor time.",
                "Split it, or check that it is the file you meant.",
            )
        return _too_much_memory(path)

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                _closed(stream)


def _closed(stream: IO[bytes]) -> None:
    with suppress(BrokenPipeError):
        stream.close()


def _too_much_memory(path: str) -> CompilewatchError:
    return RecordError(
        f"{one_line(path)}: reading it takes over {MEMORY_BYTES // 2**20} MiB of memory.",
        "Split it, or check that it is the file you meant.",
    )
