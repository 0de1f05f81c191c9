"""Opening what the user names or uploads: plain files, gzip and zip, within stated size bounds.

Bounds, so that no input can exhaust memory or disk:

- a line has at most 16 MiB, a document that must be read whole (JSON) at most 64 MiB;
- of lines without content there are at most 100,000 more than of others;
- an archive expands to at most 4 GiB, and to at most 200 times its own size once past 16 MiB;
- a zip has at most 10,000 members and no archive inside it.

Folders and files that are called by a date, by which people keep results of several nights.
"""

from __future__ import annotations

import codecs
import gzip
import io
import os
import re
import struct
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from compilewatch.db.errors import RecordError, one_line

_WORDS = (
    r"(?:nightly|night|daily|day|run|results?|bench|benchmarks?|perf|performance"
    # Files of TorchBench, in the host's local time, and of transformers' CI.
    r"|metrics|hf|summary)"
)
_DATE = r"(20\d\d)([-_.]?)(\d\d)\2(\d\d)(?:[T_. -]?(\d\d)[-:.h]?(\d\d)(?:[-:.m]?(\d\d))?Z?(?!\d))?"
_NAMES = (
    # 2026-03-01, 20260301, nightly-2026-03-01, each also with a time. Another word may mean another date.
    re.compile(rf"(?:{_WORDS}[-_. ]?)*{_DATE}(?:[-_. ]{_WORDS})*", re.IGNORECASE),
    # As PyTorch's benchmarks/dynamo/runner.py archives a day: day_060_01_03_26_performance_amp_3012.
    re.compile(r"day_\d{3}_(?P<day>\d\d)_(?P<month>\d\d)_(?P<year>\d\d)_.+"),
    # 2026-03-01_h100: what follows is of that day, unless it is another day.
    re.compile(rf"{_DATE}[-_. ](?!.*20\d\d[-_.]?\d\d[-_.]?\d\d).+", re.IGNORECASE),
)
_AHEAD = timedelta(days=1)


def named_date(file: str, folders: Sequence[str], many: int) -> datetime | None:
    """The moment, in UTC, by which a file is called, else the nearest of the first `many` folders, or three
    such as 2026/03/01; midnight where it has no time. `folders` begin with the nearest.

    01-03-2026 is no date: of two numbers nobody knows which is the month.
    """
    if (moment := _moment(file.rpartition(".")[0] or file)) is not None:
        return moment
    for at in range(min(many, len(folders))):
        parts = folders[at : at + 3]
        together = "-".join(reversed(parts)) if all(map(str.isdecimal, parts)) else ""
        if (moment := _moment(folders[at]) or _moment(together)) is not None:
            return moment
    return None


def _moment(name: str) -> datetime | None:
    """None for what is no date, and for one that is yet to come."""
    match = next((match for pattern in _NAMES if (match := pattern.fullmatch(name))), None)
    if match is None:
        return None
    if named := match.groupdict():
        parts = [f"20{named['year']}", named["month"], named["day"]]
    else:
        parts = [part or "0" for part in match.group(1, 3, 4, 5, 6, 7)]
    try:
        year, month, day, hour, minute, second = (*map(int, parts), 0, 0, 0)[:6]
        moment = datetime(year, month, day, hour, minute, second, tzinfo=UTC)
    except ValueError:
        return None
    return moment if moment <= datetime.now(UTC) + _AHEAD else None


MAX_LINE_BYTES = 16 * 2**20
MAX_EMPTY_LINES = 100_000
"""More than there are others: a small archive holds a hundred million, each of which takes its time."""
MAX_DOCUMENT_BYTES = 64 * 2**20
MAX_EXPANDED_BYTES = 4 * 2**30
MAX_EXPANSION_RATIO = 200
FREE_EXPANDED_BYTES = 16 * 2**20
MAX_ZIP_MEMBERS = 10_000

# A line of a record has some KiB: with the default of 8, every other one is put together from two reads.
_BUFFER_BYTES = 2**17
_GZIP_MAGIC = b"\x1f\x8b"
_ZIP_MAGIC = b"PK\x03\x04"
_EMPTY_ZIP_MAGIC = b"PK\x05\x06"
_ARCHIVE_SUFFIXES = {".gz", ".zip"}
# What torch writes into the folder TORCH_TRACE, and what the recorder writes.
_OF_JOBS = ("dedicated_log_torch_trace_*.log*", "compilewatch_job_*.jsonl*")
# What a line without content is made of: one of a payload, or a row of empty cells.
_NOTHING = b" \t\r\n,;"
_UTF8_BOM = b"\xef\xbb\xbf"
_UTF16_BOMS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_LONGEST_NAME = 255
# What zipfile and gzip raise on reading damaged content, and further what zipfile lets through on opening it:
# it trusts offsets, flags and names.
_DAMAGE = (gzip.BadGzipFile, zipfile.BadZipFile, zlib.error, EOFError)
_DAMAGED_DIRECTORY = (LookupError, ValueError, NotImplementedError, RuntimeError, OverflowError, struct.error)
# zipfile bounds what one read expands to for these two only.
_ZIP_METHODS = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}
_OF_SPREADSHEETS = "[Content_Types].xml"
_BOUNDS = "Archives may expand to 4 GiB and 200 times their size; unpack it and import the files."


@dataclass(frozen=True, slots=True)
class InputFile:
    """One file to read, plain, compressed, or a member of an archive.

    `shown` is how messages name it, `name` its base name without `.gz`, `folder` the name of the folder, or
    archive, that it lies in; empty where nobody knows. `folder_date` is the date by which it or a folder of
    it is called.
    """

    shown: str
    name: str
    opener: Callable[[], BinaryIO]
    sibling: Callable[[str], InputFile | None]
    """The file of that name in the same folder or archive, if there is one."""
    folder: str = ""
    folder_date: datetime | None = None

    @contextmanager
    def open(self) -> Iterator[BinaryIO]:
        """The expanded bytes; damage in the file is a RecordError."""
        try:
            try:
                stream = self.opener()
            except _DAMAGED_DIRECTORY as error:
                raise _damaged(self.shown, error) from error
            with stream, _as_utf8(stream, self.shown) as text:
                yield text
        except _DAMAGE as error:
            raise _damaged(self.shown, error) from error
        except OSError as error:
            raise _unreadable(self.shown, error) from error

    def head(self, size: int = 65_536) -> bytes:
        """The first `size` expanded bytes, without a byte order mark."""
        with self.open() as stream:
            return stream.read(size).removeprefix(_UTF8_BOM)

    def document(self) -> bytes:
        """The whole content, for formats that cannot be read in parts."""
        with self.open() as stream:
            data = stream.read(MAX_DOCUMENT_BYTES + 1)
        if len(data) > MAX_DOCUMENT_BYTES:
            raise RecordError(
                f"{self.shown}: has more than {MAX_DOCUMENT_BYTES // 2**20} MiB in one JSON document.",
                "Split it, or write one record per line where the format allows it.",
            )
        return data.removeprefix(_UTF8_BOM)

    def lines(self) -> Iterator[tuple[int, bytes]]:
        """(line number from 1, line without its end); memory does not grow with the file."""
        with self.open() as stream:
            number = empty = 0
            while line := stream.readline(MAX_LINE_BYTES + 1):
                number += 1
                if len(line) > MAX_LINE_BYTES:
                    raise RecordError(
                        f"{self.shown}, line {number}: is longer than {MAX_LINE_BYTES // 2**20} MiB.",
                        "Check that the file has one record per line.",
                    )
                empty += -1 if line.strip(_NOTHING) else 1
                if empty > MAX_EMPTY_LINES:
                    raise RecordError(
                        f"{self.shown}, line {number}: most lines until there are empty.",
                        "Check that it is the file you meant.",
                    )
                yield number, (line.removeprefix(_UTF8_BOM) if number == 1 else line).rstrip(b"\r\n")


@contextmanager
def _as_utf8(stream: BinaryIO, shown: str) -> Iterator[BinaryIO]:
    """The stream, of UTF-16 as UTF-8: what PowerShell's ">" writes."""
    peeked = io.BufferedReader(stream) if not hasattr(stream, "peek") else stream  # type: ignore[type-var]
    if peeked.peek(2)[:2] not in _UTF16_BOMS:
        yield peeked
        return
    try:
        yield io.BufferedReader(_Utf8(codecs.getreader("utf-16")(peeked)), _BUFFER_BYTES)
    except UnicodeError as error:
        raise RecordError(f"{shown}: is not UTF-16, as which it begins.", "Save it as UTF-8.") from error


class _Utf8(io.RawIOBase):
    """Text of another encoding as bytes of UTF-8, some at a time."""

    def __init__(self, reader: codecs.StreamReader) -> None:
        self._reader = reader
        self._waiting = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        if not self._waiting:
            self._waiting = self._reader.read(size=len(buffer) // 4).encode()
        data, self._waiting = self._waiting[: len(buffer)], self._waiting[len(buffer) :]
        buffer[: len(data)] = data
        return len(data)


def _damaged(shown: str, error: Exception) -> RecordError:
    return RecordError(
        f"{shown}: the archive is damaged ({one_line(str(error)) or type(error).__name__}).",
        "Pack it again, or import the unpacked files.",
    )


def _unreadable(shown: str, error: OSError) -> RecordError:
    return RecordError(
        f"{shown}: cannot be read ({error.strerror or error}).", "Check the path and its permissions."
    )


def _allowed_bytes(packed_bytes: int) -> int:
    """So far an archive of this size may expand."""
    return min(MAX_EXPANDED_BYTES, max(FREE_EXPANDED_BYTES, packed_bytes * MAX_EXPANSION_RATIO))


class _Bounded(io.RawIOBase):
    """Passes an expanding stream through and stops a decompression bomb."""

    def __init__(self, stream: gzip.GzipFile, shown: str, packed_bytes: int) -> None:
        self._stream = stream
        self._shown = shown
        self._left = _allowed_bytes(packed_bytes)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        data = self._stream.read(len(buffer))
        self._left -= len(data)
        if self._left < 0:
            raise RecordError(f"{self._shown}: expands too far.", _BOUNDS)
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self._stream.close()
        super().close()


# Where packed bytes are: on the disk, or in memory because somebody uploaded them.
Content = Path | bytes
# What lies beside a file under a name, and how messages name it.
Beside = Callable[[str], tuple[str, Content] | None]


def job_files(folder: Path) -> list[Path]:
    """The recordings of a job's processes that lie in a folder, in the order of their names."""
    return sorted({path for pattern in _OF_JOBS for path in folder.glob(pattern) if path.is_file()})


RUNS_FOLDER = "runs"
"""In a directory of trials on their way from a host without a database; it says how their runs began."""


def spool_files(folder: Path) -> list[Path]:
    """The trials of a directory that `[fleet] spool_dir` named; none of any other."""
    return sorted(folder.glob("*.json")) if (folder / RUNS_FOLDER).is_dir() else []


def input_files(path: Path, below: Path | None = None) -> list[InputFile]:
    """What `path` holds: itself, the members of a zip in the order of their names, or those of a folder.

    Of which day it is may say the folder that it lies in, and those up to `below`, the folder that was named;
    further up a date may be of anything.

    Raises RecordError when it cannot be read or breaks a bound.
    """
    if path.is_dir() and (logs := job_files(path) or spool_files(path)):
        return [file for log in logs for file in input_files(log)]

    def beside(name: str) -> tuple[str, Content] | None:
        candidate = path.with_name(name)
        # Not Path.is_file(): it raises for a name that is too long.
        return (str(candidate), candidate) if os.path.isfile(candidate) else None  # noqa: PTH113

    inside = path.parent.resolve()
    many = 1 if below is None else len(path.parts) - len(below.parts)
    around = _Around(tuple(folder.name for folder in (inside, *inside.parents)), many)
    return _files(str(path), path.name, path, beside, around)


def uploaded_files(name: str, uploads: Mapping[str, bytes]) -> list[InputFile]:
    """What the upload `name` holds; what was uploaded with it lies beside it. Nothing touches the disk.

    Raises RecordError as `input_files` does.
    """

    if len(name) > _LONGEST_NAME:
        raise RecordError(f"{one_line(name)}: has too long a name.", "Give it another name.")

    def beside(other: str) -> tuple[str, Content] | None:
        return (one_line(other), uploads[other]) if other in uploads else None

    return _files(one_line(name), PurePosixPath(name).name, uploads[name], beside)


def files_below(path: Path) -> list[Path]:
    """Every file in a folder and in those in it, by path, without hidden ones and linked folders. A folder of
    a job's logs, or of a host's trials, is one.

    Raises RecordError where it holds no file, or more than an archive may.
    """
    if not path.is_dir() or job_files(path) or spool_files(path):
        return [path]
    found: list[Path] = []
    for folder, folders, names in os.walk(path):
        here = Path(folder)
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        if here != path and (job_files(here) or spool_files(here)):
            folders.clear()
            found.append(here)
        else:
            found += [here / name for name in names if not name.startswith(".") and (here / name).is_file()]
        if len(found) > MAX_ZIP_MEMBERS:
            raise RecordError(
                f"{one_line(str(path), 1_000)}: holds more than {MAX_ZIP_MEMBERS} files.",
                "Name the folders in it that hold results.",
            )
    if not found:
        raise RecordError(
            f"{one_line(str(path), 1_000)}: holds no file.", "Check that it is the folder you meant."
        )
    return sorted(found)


@dataclass(frozen=True, slots=True)
class _Around:
    """The folders around a file, the nearest first, and how many of them may say of which day it is."""

    folders: tuple[str, ...] = ()
    many: int = 0


def _files(
    shown: str, name: str, content: Content, beside: Beside, around: _Around = _Around()
) -> list[InputFile]:
    try:
        with _raw(content) as stream:
            magic = stream.read(4)
    except OSError as error:
        raise _unreadable(shown, error) from error
    if magic in (_ZIP_MAGIC, _EMPTY_ZIP_MAGIC):
        return _zip_members(shown, content, around)
    return [_plain_file(shown, name, content, beside, around)]


def _raw(content: Content) -> BinaryIO:
    return content.open("rb", _BUFFER_BYTES) if isinstance(content, Path) else io.BytesIO(content)


def _size_bytes(content: Content) -> int:
    return content.stat().st_size if isinstance(content, Path) else len(content)


def _source(content: Content) -> Path | io.BytesIO:
    return content if isinstance(content, Path) else io.BytesIO(content)


def _plain_file(shown: str, name: str, content: Content, beside: Beside, around: _Around) -> InputFile:
    def opener() -> BinaryIO:
        stream = _raw(content)
        if stream.read(2) != _GZIP_MAGIC:
            stream.seek(0)
            return stream
        stream.close()
        expanding = gzip.open(_source(content))  # noqa: SIM115 - its reader closes it
        return io.BufferedReader(_Bounded(expanding, shown, _size_bytes(content)), _BUFFER_BYTES)

    def sibling(other: str) -> InputFile | None:
        for candidate in (other, other + ".gz"):
            file = beside(candidate)
            if file is not None:
                return _plain_file(file[0], candidate, file[1], beside, around)
        return None

    own = name.removesuffix(".gz")
    date = named_date(own, around.folders, around.many)
    return InputFile(shown, own, opener, sibling, next(iter(around.folders), ""), date)


def _zip_members(shown: str, content: Content, around: _Around) -> list[InputFile]:
    try:
        with zipfile.ZipFile(_source(content)) as archive:
            packed = archive.infolist()
    except (*_DAMAGE, *_DAMAGED_DIRECTORY, OSError) as error:
        raise _damaged(shown, error) from error
    infos = _contents(shown, packed)
    _check_zip(shown, _size_bytes(content), infos)
    names = {info.filename for info in infos}
    return [
        _zip_member(shown, content, info.filename, names, around)
        for info in sorted(infos, key=lambda info: info.filename)
    ]


def _contents(shown: str, packed: list[zipfile.ZipInfo]) -> list[zipfile.ZipInfo]:
    """The members without folders and hidden files. Raises RecordError where there is none."""
    files = [info for info in packed if not info.filename.endswith("/")]
    outside = next((info for info in files if ".." in _parts(info)), None)
    if outside is not None:
        raise RecordError(
            f"{shown}: {one_line(outside.filename)}: lies outside of the archive.",
            "Pack it again from the folder that holds the files, or import them unpacked.",
        )
    infos = [info for info in files if not any(part.startswith((".", "__MACOSX")) for part in _parts(info))]
    if any(info.filename == _OF_SPREADSHEETS for info in infos):
        raise RecordError(f"{shown}: is a spreadsheet or another office document.", "Save the sheet as CSV.")
    if not infos:
        content = "hidden files only" if files else "no file"
        raise RecordError(f"{shown}: the archive holds {content}.", "Pack the result files into it.")
    return infos


def _parts(info: zipfile.ZipInfo) -> tuple[str, ...]:
    return PurePosixPath(info.filename.replace("\\", "/")).parts


def _check_zip(shown: str, packed_bytes: int, infos: list[zipfile.ZipInfo]) -> None:
    """Trusts declared sizes: zipfile reads no more than them and then checks the CRC."""
    if len(infos) > MAX_ZIP_MEMBERS:
        raise RecordError(f"{shown}: has {len(infos)} members, more than {MAX_ZIP_MEMBERS}.", _BOUNDS)
    expanded = sum(info.file_size for info in infos)
    allowed = _allowed_bytes(packed_bytes)
    if expanded > allowed:
        raise RecordError(f"{shown}: expands to {expanded} bytes, {allowed} are allowed.", _BOUNDS)
    names = Counter(info.filename for info in infos)
    for info in infos:
        inside = f"{shown}: {one_line(info.filename)}"
        if names[info.filename] > 1:
            raise RecordError(f"{inside}: is there {names[info.filename]} times.", "Pack it again.")
        if len(info.filename) > _LONGEST_NAME:
            raise RecordError(f"{inside}: has too long a name.", "Pack it again, under another name.")
        if not PurePosixPath(info.filename).name:
            raise RecordError(f"{shown}: a member has no name.", "Pack it again.")
        if info.flag_bits & 0x1:
            raise RecordError(f"{inside}: is encrypted.", "Import the decrypted files.")
        if info.compress_type not in _ZIP_METHODS:
            raise RecordError(f"{inside}: is packed by another method.", "Pack it with deflate.")
        if PurePosixPath(info.filename).suffix.lower() in _ARCHIVE_SUFFIXES:
            raise RecordError(
                f"{inside}: is an archive inside an archive.", "Unpack it and import the files."
            )


def _zip_member(shown: str, content: Content, member: str, names: set[str], around: _Around) -> InputFile:
    def opener() -> BinaryIO:
        with zipfile.ZipFile(_source(content)) as archive:
            # The member keeps the archive's file open until it is closed itself.
            return io.BufferedReader(archive.open(member), _BUFFER_BYTES)  # type: ignore[type-var]

    def sibling(name: str) -> InputFile | None:
        other = str(PurePosixPath(member).with_name(name))
        return _zip_member(shown, content, other, names, around) if other in names else None

    path = PurePosixPath(member)
    folders = (*path.parts[-2::-1], PurePosixPath(shown).stem, *around.folders)
    date = named_date(path.name, folders, len(path.parts) + around.many)
    return InputFile(f"{shown}: {one_line(member)}", path.name, opener, sibling, folders[0], date)
