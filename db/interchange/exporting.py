"""The way out: the trials that a filter selects, streamed into one file of a chosen format."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum
from pathlib import Path
from typing import BinaryIO

from db.errors import CompilewatchError
from db.interchange import markdown, oss_v3_export, table_csv, trial_jsonl
from db.interchange.bulk import without_cycle_collection
from db.queries.filters import Filters
from db.queries.trial_batches import TrialBatch, trial_batches
from db.queries.trial_lines import trial_lines
from db.session import Database

Writer = Callable[[Iterable[TrialBatch], BinaryIO], int]


class ExportFormat(StrEnum):
    JSONL = "jsonl"
    CSV = "csv"
    PARQUET = "parquet"
    OSS_V3 = "oss-v3"
    MARKDOWN = "markdown"


def _write_parquet(batches: Iterable[TrialBatch], output: BinaryIO) -> int:
    """Loads pyarrow, half a second, only where it is used."""
    from db.interchange import parquet

    return parquet.write(batches, output)


WRITERS: dict[ExportFormat, Writer] = {
    ExportFormat.CSV: table_csv.write,
    ExportFormat.PARQUET: _write_parquet,
    ExportFormat.OSS_V3: oss_v3_export.write,
    ExportFormat.MARKDOWN: markdown.write,
}


# What a name may end in; an OSS v3 file has one JSON record per line, as ours has.
_OF_SUFFIX: dict[str, tuple[ExportFormat, ...]] = {
    ".jsonl": (ExportFormat.JSONL, ExportFormat.OSS_V3),
    ".csv": (ExportFormat.CSV,),
    ".parquet": (ExportFormat.PARQUET,),
    ".md": (ExportFormat.MARKDOWN,),
    ".markdown": (ExportFormat.MARKDOWN,),
}


def format_of(output: Path | None, told: str | None) -> str:
    """The format that was `told`, else that of the name of `output`, else jsonl.

    Raises CompilewatchError where the name is that of another format.
    """
    fitting = _OF_SUFFIX.get(output.suffix.lower(), ()) if output else ()
    if told is None:
        return fitting[0] if fitting else ExportFormat.JSONL
    if fitting and told in list(ExportFormat) and told not in fitting:
        raise CompilewatchError(
            f"{output}: is the name of a {fitting[0]} file, and --format says {told}.",
            "Leave out --format, or give the file another suffix.",
        )
    return told


def export(db: Database, filters: Filters, *, format: str, output: BinaryIO | Path) -> int:
    """Write every trial that `filters` selects, oldest first; returns how many.

    Memory does not grow with their number. A path is replaced only once the whole file is written.
    Raises CompilewatchError for an unknown format or a path that cannot be written.
    """
    if format not in list(ExportFormat):
        raise CompilewatchError(
            f"{format}: is no format that can be exported.", f"Known are {', '.join(ExportFormat)}."
        )
    with without_cycle_collection(), _stream(output) as stream:
        if format == ExportFormat.JSONL:
            return trial_jsonl.write_lines(trial_lines(db, filters), stream)
        return WRITERS[ExportFormat(format)](trial_batches(db, filters), stream)


def _stream(output: BinaryIO | Path) -> contextlib.AbstractContextManager[BinaryIO]:
    return _replacing(output) if isinstance(output, Path) else contextlib.nullcontext(output)


@contextlib.contextmanager
def _replacing(path: Path) -> Iterator[BinaryIO]:
    """A file beside `path` that takes its place when the block ends well, and is removed when not."""
    try:
        descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as error:
        raise _unwritable(path, error) from error
    partial = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            yield stream
        partial.chmod(0o666 & ~_umask())
        partial.replace(path)
    except OSError as error:
        raise _unwritable(path, error) from error
    finally:
        partial.unlink(missing_ok=True)


def _umask() -> int:
    """The process's mask; it can only be read by setting it."""
    mask = os.umask(0o022)
    os.umask(mask)
    return mask


def _unwritable(path: Path, error: OSError) -> CompilewatchError:
    return CompilewatchError(
        f"{path}: cannot be written ({error.strerror or error}).",
        "Check the folder, its permissions and space.",
    )
