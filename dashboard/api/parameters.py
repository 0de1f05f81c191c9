"""Query parameters: what each may hold, read strictly, and the same as JSON Schema for OpenAPI.

Every kind of value has its `schema`, and `read`, which raises ValueError with what a text must be.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from typing import Any

from starlette.requests import Request

from dashboard.http.errors import SEE_DOCUMENT, ParameterError
from dashboard.links.resolution import Names, the_one, why_unknown
from dashboard.links.selectors import ALL, quoted
from db.engine.session import Database
from db.errors import NotFoundError
from db.queries.facets import build_names, former_machine_names, machine_names
from db.queries.filters import Filters
from db.records.trial import SourceKind, Status, Task

JsonSchema = dict[str, Any]
Values = Mapping[str, Any]
"""Those of a route's parameters, by name."""
LONGEST_TEXT = 500
# PostgreSQL refuses NUL, so nothing stored has one; every other character may be part of a name.
_TEXT = re.compile(r"^[^\x00]+$")
_RFC_3339 = re.compile(r"^\d{4}-\d\d-\d\d([Tt ]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d))?$")


@dataclass(frozen=True)
class Text:
    """A name or an id."""

    @property
    def schema(self) -> JsonSchema:
        return {"type": "string", "minLength": 1, "maxLength": LONGEST_TEXT, "pattern": _TEXT.pattern}

    def read(self, text: str) -> str:
        if not text or len(text) > LONGEST_TEXT or not _TEXT.match(text):
            raise ValueError(f"must be 1 to {LONGEST_TEXT} characters, none of them NUL")
        return text


@dataclass(frozen=True)
class Word:
    """One of a few fixed words."""

    options: tuple[str, ...]

    @property
    def schema(self) -> JsonSchema:
        return {"type": "string", "enum": list(self.options)}

    def read(self, text: str) -> str:
        if text not in self.options:
            raise ValueError(f"must be one of {', '.join(self.options)}, not {quoted(text)}")
        return text


@dataclass(frozen=True)
class Whole:
    """A whole number from `low` to `high`."""

    low: int
    high: int

    @property
    def schema(self) -> JsonSchema:
        return {"type": "integer", "minimum": self.low, "maximum": self.high}

    def read(self, text: str) -> int:
        # int() would also take signs, underscores, spaces and the digits of every script
        if not re.fullmatch(r"[0-9]{1,18}", text) or not self.low <= int(text) <= self.high:
            raise ValueError(f"must be a whole number from {self.low:,} to {self.high:,}, not {quoted(text)}")
        return int(text)


@dataclass(frozen=True)
class Decimal:
    """A number from `low` to `high`."""

    low: float
    high: float

    @property
    def schema(self) -> JsonSchema:
        return {"type": "number", "minimum": self.low, "maximum": self.high}

    def read(self, text: str) -> float:
        try:
            number = float(text) if re.fullmatch(r"[-+0-9.eE]+", text) else math.nan
        except ValueError:
            number = math.nan
        if not self.low <= number <= self.high:
            raise ValueError(f"must be a number from {self.low:g} to {self.high:g}, not {quoted(text)}")
        return number


@dataclass(frozen=True)
class Moment:
    """A day or a time; `ends` says whether a day means its last moment rather than its first."""

    ends: bool = False

    @property
    def schema(self) -> JsonSchema:
        return {
            "type": "string",
            "anyOf": [{"format": "date"}, {"format": "date-time"}],
            "examples": ["2026-11-20", "2026-11-20T18:00:00Z"],
        }

    def read(self, text: str) -> datetime:
        # fromisoformat() alone would also take weeks, times without a zone and any separator
        moment = _parsed(text) if _RFC_3339.match(text) else None
        if moment is None:
            raise ValueError(f"must be like 2026-11-20 or 2026-11-20T18:00:00Z, not {quoted(text)}")
        if isinstance(moment, datetime):
            return _in_utc(moment)
        return datetime.combine(moment, time.max if self.ends else time.min, UTC)


def _parsed(text: str) -> datetime | date | None:
    try:
        if len(text) == 10:
            return date.fromisoformat(text)
        # RFC 3339 allows a leap second, Python does not.
        return datetime.fromisoformat(re.sub(r":60(?=[.Z+-])", ":59", text.upper()))
    except ValueError:
        return None


def _in_utc(moment: datetime) -> datetime:
    """`moment` in UTC; where that lies outside the years 1 to 9999, the nearest moment inside."""
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        return moment.replace(tzinfo=UTC)


Kind = Text | Word | Whole | Decimal | Moment


@dataclass(frozen=True)
class Parameter:
    """One key of a query string. `several`: it may be repeated, and `all` means no restriction."""

    name: str
    kind: Kind
    description: str
    several: bool = False
    required: bool = False
    default: Any = None
    example: str | None = None

    @property
    def schema(self) -> JsonSchema:
        """The JSON Schema of its value, its default included."""
        if self.several:
            return {"type": "array", "items": self.kind.schema}
        return self.kind.schema if self.default is None else {**self.kind.schema, "default": self.default}

    def read(self, values: Sequence[str]) -> Any:
        """Raises ParameterError."""
        if not values:
            if self.required:
                raise ParameterError(f"The parameter {self.name} is missing.", self.description)
            return () if self.several else self.default
        if self.several:
            return () if list(values) == [ALL] else tuple(self._one(value) for value in values)
        if len(values) > 1:
            raise ParameterError(f"The parameter {self.name} can be given only once.", "Choose one value.")
        return self._one(values[0])

    def _one(self, text: str) -> Any:
        try:
            return self.kind.read(text)
        except ValueError as error:
            raise ParameterError(f"The parameter {self.name} {error}.", self.description) from None


def query_of(request: Request) -> dict[str, list[str]]:
    """The parameters of an address, each with all its values."""
    return {name: request.query_params.getlist(name) for name in request.query_params}


def read_all(parameters: Sequence[Parameter], query: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """The value of every parameter, defaults included. Raises ParameterError, also for an unknown key."""
    known = [parameter.name for parameter in parameters]
    for name in query:
        if name not in known:
            takes = f"It takes {', '.join(known)}." if known else "It takes no parameter."
            raise ParameterError(f"This route has no parameter {quoted(name)}.", f"{takes} {SEE_DOCUMENT}")
    return {parameter.name: parameter.read(query.get(parameter.name, ())) for parameter in parameters}


_NAMES = {"machine": machine_names, "build": build_names}


def with_ids(database: Database, values: Mapping[str, Any]) -> dict[str, Any]:
    """`values` of parameters with ids for names that only one machine or build has, and all else as it is.

    A machine that was renamed answers to its old name too.
    """
    return {
        key: _ids(database, key, value) if value and key in _NAMES else value for key, value in values.items()
    }


def _ids(database: Database, key: str, value: str | tuple[str, ...]) -> str | tuple[str, ...]:
    names = _NAMES[key](database)
    items = (value,) if isinstance(value, str) else value
    ids = [_id_of(database, key, item, names) or item for item in items]
    return ids[0] if isinstance(value, str) else tuple(dict.fromkeys(ids))


def _id_of(database: Database, key: str, item: str, names: Names) -> str | None:
    known = the_one(item, {each for _, each in names}, names)
    if known is None and key == "machine":
        return the_one(item, (), former_machine_names(database))
    return known


def require(database: Database, values: Mapping[str, Any]) -> None:
    """Raises NotFoundError for a machine or build of `values`, ids by now, that nothing stored has."""
    for key, names_of in _NAMES.items():
        if value := values.get(key):
            names = names_of(database)
            known = [each for _, each in names]
            if value not in known:
                raise NotFoundError(why_unknown(key, value, known, names), "Correct the address.")


FORMAT = Parameter("format", Word(("json", "csv")), "json or csv; without it the Accept header decides.")
LIMIT = Parameter("limit", Whole(1, 1000), "At most this many rows.", default=100)
CURSOR = Parameter("cursor", Text(), "The `next` of the page before: the id of its last row.")
A_MACHINE = "A machine's id, or its name where only one is called so."
A_BUILD = "A build's id, or its version of torch where only one has it."
WORKLOAD = Parameter("workload", Text(), "A workload by name.", several=True)
STRATEGY = Parameter("strategy", Text(), "A strategy by name.", several=True)
MACHINE = Parameter("machine", Text(), A_MACHINE, several=True)
TASK = Parameter("task", Word(tuple(Task)), "What is measured.", several=True)
SUITE = Parameter("suite", Text(), "A suite by name.", several=True)
SINCE = Parameter("since", Moment(), "Started at or after this day or time (UTC).")
UNTIL = Parameter("until", Moment(ends=True), "Started at or before this day or time (UTC).")
FILTERS = (
    WORKLOAD,
    STRATEGY,
    MACHINE,
    Parameter("build", Text(), A_BUILD, several=True),
    SUITE,
    Parameter("run", Text(), "A run's id.", several=True),
    TASK,
    SINCE,
    UNTIL,
    Parameter("status", Word(tuple(Status)), "How the trial ended.", several=True),
    Parameter("source", Word(tuple(SourceKind)), "Measured here, or imported.", several=True),
)


def filters_of(values: Mapping[str, Any]) -> Filters:
    """The filters among `values`; those that a route does not take leave their subject open."""
    return Filters(
        workloads=values.get("workload", ()),
        strategies=values.get("strategy", ()),
        machines=values.get("machine", ()),
        builds=values.get("build", ()),
        suites=values.get("suite", ()),
        runs=values.get("run", ()),
        tasks=tuple(Task(task) for task in values.get("task", ())),
        since=values.get("since"),
        until=values.get("until"),
        statuses=tuple(Status(status) for status in values.get("status", ())),
        sources=tuple(SourceKind(kind) for kind in values.get("source", ())),
    )
