"""Reading values out of foreign files: each one checked, each error naming file, line and field."""

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain
from typing import Any, NoReturn

from compilewatch.db.errors import RecordError, one_line
from compilewatch.db.interchange.files.opening import InputFile
from compilewatch.db.records.fields import INT64_MAX

NS_PER_S = 1_000_000_000
NS_PER_MS = 1_000_000
BYTES_PER_GB = 1_000_000_000
BYTES_PER_MB = 1_000_000

_MISSING_CELLS = {"", "nan", "na", "n/a", "none", "null", "-"}
_OTHER_SEPARATORS = (";", "\t")
_NUMBER = re.compile(
    r"\s*[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?\s*|\s*[-+]?inf(?:inity)?\s*", re.I
)
_DECIMAL = re.compile(r"-?(?:(?P<grouped>[1-9][0-9]{0,2}[.,][0-9]{3})|[0-9]+[.,][0-9]+(?:[eE][-+]?[0-9]+)?)")
_AS_NUMBER = "Write numbers as 1234.5: a decimal point, no separators of thousands, no sign such as %."
_COUNTS = {"cpu_count", "device_count", "threads"}
_MILLISECOND_EPOCH = 100_000_000_000
_EPOCH = re.compile(r"[0-9]{10}(?:[0-9]{3})?(?:\.[0-9]+)?")


@dataclass(frozen=True, slots=True)
class Place:
    """Where in a file something was found; `line` is 1-based, None in a document read whole."""

    file: str
    line: int | None = None

    def __str__(self) -> str:
        return self.file if self.line is None else f"{self.file}, line {self.line}"

    def error(
        self, field: str, problem: str, next_step: str = "Correct the file and import it again."
    ) -> RecordError:
        """An error that names this place and `field`; `problem` is one clause, without the full stop."""
        return RecordError(f"{self}: {one_line(field)}: {one_line(problem, 400)}.", next_step)


@dataclass(frozen=True, slots=True)
class Fields:
    """A JSON object or a CSV row; a missing key, an empty cell, null and NaN all read as None."""

    place: Place
    data: Mapping[str, Any]
    path: str = ""

    def name_of(self, key: str) -> str:
        """`key` as people find it in the file: with the path of the object that holds it."""
        return f"{self.path}.{key}" if self.path else key

    def fail(self, key: str, problem: str) -> NoReturn:
        """Raise RecordError at this place about `key`."""
        raise self.place.error(self.name_of(key), problem)

    def says(self, key: str) -> bool:
        """Whether something stands under `key` that is no word for nothing, such as "n/a"."""
        value = self.data.get(key)
        return value is not None and not (isinstance(value, str) and value.strip().lower() in _MISSING_CELLS)

    def number(self, key: str) -> float | None:
        """A finite number, from JSON or as text."""
        return self._finite(key, self.data[key]) if self.says(key) else None

    def numbers(self, key: str) -> list[float]:
        """A list of finite numbers, empty where there is none; nulls in it are left out."""
        return [value for value in self.numbers_in_place(key) if value is not None]

    def numbers_in_place(self, key: str) -> list[float | None]:
        """The same with its nulls, so that what stands at one place in several lists belongs together."""
        values = self.data.get(key)
        if values is None:
            return []
        if not isinstance(values, list):
            self.fail(key, "must be a list of numbers")
        return [None if value is None else self._finite(key, value) for value in values]

    def _finite(self, key: str, value: object) -> float:
        if isinstance(value, bool) or not isinstance(value, (int, float, str)):
            self.fail(key, f"must be a number, not {_shown(value)}")
        try:
            number = math.nan if isinstance(value, str) and not _NUMBER.fullmatch(value) else float(value)
        except OverflowError:
            self.fail(key, f"must be a number, not {_shown(value)}")
        if math.isnan(number) and isinstance(value, str):
            raise self.place.error(
                self.name_of(key),
                f"must be a number, not {_shown(value)}",
                _AS_NUMBER,
            )
        if not math.isfinite(number):
            self.fail(key, f"must be a finite number, not {_shown(value)}")
        return number

    def scaled(self, key: str, scale: float) -> int | None:
        """`number(key) * scale` as a whole number that a database can hold; refuses what is negative."""
        number = self.number(key)
        return None if number is None else self.whole(key, number * scale)

    def duration_ns(self, key: str, scale: float) -> int | None:
        """As `scaled`, for what took time: refuses 0 too, which says that nothing was measured."""
        value = self.scaled(key, scale)
        if value == 0:
            self.fail(key, "must be more than 0; leave it empty where it was not measured")
        return value

    def whole(self, key: str, value: float) -> int:
        """`value` rounded to a number that a database can hold. Raises RecordError below 0 and above 2^63."""
        if not 0 <= value <= INT64_MAX:
            self.fail(key, "must lie between 0 and 2^63 in nanoseconds or bytes")
        return min(round(value), INT64_MAX)

    def count(self, key: str) -> int | None:
        number = self.number(key)
        if number is None:
            return None
        if number < 0 or number > INT64_MAX or not number.is_integer():
            self.fail(key, f"must be a whole number of 0 or more, not {_shown(self.data.get(key))}")
        return int(number)

    def counts(self, key: str) -> list[int]:
        """A list of whole numbers of 0 or more, empty where there is none."""
        values = self.data.get(key)
        if values is None:
            return []
        if not isinstance(values, list):
            self.fail(key, "must be a list of whole numbers")
        for value in values:
            if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= INT64_MAX:
                self.fail(key, f"must be a whole number of 0 or more, not {_shown(value)}")
        return values

    def figures(self, keys: Iterable[str]) -> dict[str, float]:
        """The numbers that stand under `keys`."""
        return {key: figure for key in keys if (figure := self.number(key)) is not None}

    def sizes(self, keys: Iterable[str]) -> dict[str, int]:
        """The whole numbers that stand under `keys`."""
        return {key: size for key in keys if (size := self.count(key)) is not None}

    def words(self, keys: Iterable[str]) -> dict[str, str]:
        """The texts that stand under `keys`."""
        return {key: text for key in keys if (text := self.text(key)) is not None}

    def facts(self, paths: Mapping[str, str]) -> dict[str, Any]:
        """Of each fact the text at its path, such as "environment.cpu", or the whole number: of facts that
        count, and of sizes of a batch.
        """
        return {fact: self._fact(fact, path.split(".")) for fact, path in paths.items()}

    def _fact(self, fact: str, path: Sequence[str]) -> str | int | None:
        part = self
        for key in path[:-1]:
            part = part.part(key)
        if fact == "batch_size":
            return part.count(path[-1]) or None
        return part.count(path[-1]) if fact in _COUNTS else part.text(path[-1])

    def text(self, key: str, limit: int = 200) -> str | None:
        """A non-empty text of at most `limit` characters that a database can store."""
        value = self.data.get(key)
        if value is None:
            return None
        if not isinstance(value, str):
            self.fail(key, f"must be text, not {_shown(value)}")
        return self.storable(key, value.strip(), limit) or None

    def storable(self, key: str, value: str, limit: int = 200) -> str:
        """`value` where a database can store it: at most `limit` characters, no NUL, no half of a pair."""
        if len(value) > limit:
            self.fail(key, f"has {len(value)} characters, more than {limit}")
        if "\0" in value or any("\ud800" <= character <= "\udfff" for character in value):
            self.fail(key, "holds a character that no database stores")
        return value

    def required_text(self, key: str, limit: int = 200) -> str:
        """As `text`; raises RecordError where there is none."""
        value = self.text(key, limit)
        if value is None:
            self.fail(key, "is missing")
        return value

    def flag(self, key: str) -> bool | None:
        """True or false, from JSON."""
        value = self.data.get(key)
        if value is not None and not isinstance(value, bool):
            self.fail(key, f"must be true or false, not {_shown(value)}")
        return value

    def part(self, key: str) -> Fields:
        """The object under `key`, an empty one where it is missing."""
        value = self.data.get(key)
        if value is None:
            return Fields(self.place, {}, self.name_of(key))
        return as_fields(self.place, value, self.name_of(key))

    def objects(self, key: str) -> Iterator[Fields]:
        """The entries of the list under `key`, each an object. Raises RecordError where it is none."""
        entries = self.data.get(key)
        if not isinstance(entries, list):
            self.fail(key, "must be a list")
        for index, entry in enumerate(entries):
            yield as_fields(self.place, entry, self.name_of(f"{key}.{index}"))

    def parts(self) -> Iterator[tuple[str, Fields]]:
        """Every entry of this object as an object."""
        for key in self.data:
            yield self.storable(key, key), self.part(key)


def as_fields(place: Place, value: object, path: str = "") -> Fields:
    """`value` as an object; raises RecordError when it is none."""
    if not isinstance(value, dict):
        raise place.error(path or "the record", f"must be an object, not {_shown(value)}")
    return Fields(place, value, path)


def _shown(value: object) -> str:
    """`value` for a message, short whatever it is."""
    if isinstance(value, (dict, list)):
        return "an object" if isinstance(value, dict) else "a list"
    if isinstance(value, int) and not isinstance(value, bool) and value.bit_length() > 64:
        return "a number beyond 64 bits"
    return repr(value)[:60]


def load_json(data: bytes, place: Place, *, unlimited: str | None = None) -> object:
    """Strict JSON: duplicate keys and endless nesting are refused, and so is Infinity, unless it has a
    meaning and reads as the word `unlimited`. NaN, as Python writes what it could not measure, is null.
    """

    def constant(text: str) -> str | None:
        if text == "NaN":
            return None
        if text == "Infinity" and unlimited:
            return unlimited
        raise ValueError(f"{text} is not a number")

    try:
        return json.loads(data.decode("utf-8"), object_pairs_hook=_unique, parse_constant=constant)
    except UnicodeDecodeError as error:
        raise place.error("the text", f"is not UTF-8 (byte {error.start})") from error
    except RecursionError as error:
        raise place.error("the document", "is nested too deeply") from error
    except ValueError as error:
        raise place.error("the document", f"is not JSON: {str(error)[:200]}") from error


def _unique(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    unique = dict(pairs)
    if len(unique) < len(pairs):
        names: set[str] = set()
        twice = next(key for key, _ in pairs if key in names or names.add(key))  # type: ignore[func-returns-value]
        raise ValueError(f"the key {_shown(twice)} occurs twice in one object")
    return unique


def json_document(file: InputFile) -> Fields:
    """The one object that a whole file is."""
    place = Place(file.shown)
    return as_fields(place, load_json(file.document(), place))


def json_documents(file: InputFile, *, unlimited: str | None = None) -> Iterator[Fields]:
    """Every object of a file: one a line where the first line is JSON of its own, else the one that the file
    is, or those of its list. `unlimited` as in `load_json`.
    """
    first = next((line for _, line in file.lines() if line.strip()), b"")
    texts: Iterable[tuple[Place, bytes]]
    try:
        json.loads(first)
        texts = ((Place(file.shown, number), line) for number, line in file.lines() if line.strip())
    except (ValueError, RecursionError):
        texts = [(Place(file.shown), file.document())]
    number = 0
    for place, text in texts:
        value = load_json(text, place, unlimited=unlimited)
        for each in value if isinstance(value, list) else [value]:
            number += 1
            yield as_fields(place, each, f"record {number}")


def csv_header(file: InputFile) -> list[str]:
    """The column names; empty for an empty file."""
    return next(_csv_lines(file), (1, []))[1]


def separator_of(header: str) -> str:
    """What separates the columns of a CSV: a comma, or a semicolon or tab where no comma does."""
    if len(next(csv.reader([header]), [])) > 1:
        return ","
    return next((each for each in _OTHER_SEPARATORS if each in header), ",")


def csv_rows(file: InputFile, *, may_repeat: bool = False) -> Iterator[Fields]:
    """One Fields per data row, by header; raises RecordError for a ragged row and for two columns of one
    name, of which nothing is told where they `may_repeat`.
    """
    lines = _csv_lines(file)
    _, header = next(lines, (1, []))
    twice = next((name for name in header if header.count(name) > 1), None)
    if twice is not None and not may_repeat:
        raise Place(file.shown, 1).error(_shown(twice), "is the name of two columns")
    for number, row in lines:
        place = Place(file.shown, number)
        # A spreadsheet writes empty cells behind the last column.
        cells = row if any(row[len(header) :]) else row[: len(header)]
        if len(cells) != len(header):
            raise place.error("the row", f"has {len(cells)} cells, the header has {len(header)}")
        yield Fields(place, dict(zip(header, cells, strict=True)))


def _csv_lines(file: InputFile) -> Iterator[tuple[int, list[str]]]:
    lines = _text_lines(file)
    first: list[str] = []
    for line in lines:
        first.append(line)
        if line.strip():
            break
    if first and "\r" in first[-1]:
        raise Place(file.shown, len(first)).error(
            "the header", "ends in a carriage return alone", "Save it with line feeds."
        )
    try:
        separator = separator_of(first[-1]) if first else ","
        reader = csv.reader(chain(first, lines), strict=True, delimiter=separator)
    except csv.Error as error:
        raise Place(file.shown, len(first)).error("the header", f"is not CSV: {error}") from error
    decimals, header = _Decimals(separator), True
    try:
        for row in reader:
            cells = [cell.strip() for cell in row]
            if not any(cells):
                continue
            if header:
                # The last columns of a spreadsheet have neither a name nor cells.
                while len(cells) > 1 and not (cells[-1] or cells[-2]):
                    del cells[-1]
            yield (
                reader.line_num,
                cells if header else decimals.read(Place(file.shown, reader.line_num), cells),
            )
            header = False
    except csv.Error as error:
        raise Place(file.shown, reader.line_num).error("the row", f"is not CSV: {error}") from error
    decimals.require_one(tabs=separator == "\t")


class _Decimals:
    """Which sign stands before decimals where no comma separates columns: programs write commas for both in
    the same countries. A number like 1,234 or 1.234 may be meant with a separator of thousands.
    """

    def __init__(self, separator: str) -> None:
        self._used = separator != ","
        self._sure: set[str] = set()
        self._unsure: dict[str, tuple[Place, str]] = {}

    def read(self, place: Place, cells: list[str]) -> list[str]:
        """The cells of a row, numbers with a decimal point."""
        return [self._cell(place, cell) for cell in cells] if self._used else cells

    def _cell(self, place: Place, cell: str) -> str:
        match = _DECIMAL.fullmatch(cell)
        if match is None:
            return cell
        sign = "," if "," in cell else "."
        if match["grouped"]:
            self._unsure.setdefault(sign, (place, cell))
        else:
            self._sure.add(sign)
        return cell.replace(",", ".")

    def require_one(self, *, tabs: bool) -> None:
        """Raises RecordError where the other numbers of the file do not tell what an unsure one means."""
        comma, point = self._unsure.get(","), self._unsure.get(".")
        unsure = None
        if "," in self._sure:
            unsure = point
        elif comma and (tabs or point or "." in self._sure):
            unsure = comma
        if unsure is not None:
            raise unsure[0].error(
                unsure[1], "may be a thousand times that: a separator of thousands or of decimals", _AS_NUMBER
            )


def _text_lines(file: InputFile) -> Iterator[str]:
    for number, line in file.lines():
        try:
            yield line.decode("utf-8") + "\n"
        except UnicodeDecodeError as error:
            raise Place(file.shown, number).error(
                "the text", f"is not UTF-8 (byte {error.start})", "Save it as UTF-8."
            ) from error


def moment(fields: Fields, key: str) -> datetime | None:
    """A point in time: ISO 8601 (UTC when it names no zone), or seconds or milliseconds since 1970."""
    value = fields.data.get(key)
    if value is None or value == "":
        return None
    try:
        # ClickHouse writes whole numbers of 64 bits as text.
        if isinstance(value, str) and not _EPOCH.fullmatch(value):
            parsed = datetime.fromisoformat(value)
            return (parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).astimezone(UTC)
        seconds = fields.number(key) or 0.0
        return datetime.fromtimestamp(seconds / 1000 if seconds > _MILLISECOND_EPOCH else seconds, UTC)
    except (ValueError, OverflowError, OSError):
        fields.fail(key, f"is no date and time: {_shown(value)}")
