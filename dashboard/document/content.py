"""What a report consists of: a closed set of parts, stored as JSON and drawn without anything else."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, ValidationError

from compilewatch.db.errors import CompilewatchError
from compilewatch.db.records.fields import Closed, UtcDatetime

SCHEMA: Literal["compilewatch.report/1"] = "compilewatch.report/1"


class ReportError(CompilewatchError):
    """A report cannot be made or shown."""


class Lines(Closed):
    """Sentences, each a paragraph, or with `listed` an item of a list, or with `code` a line of code."""

    kind: Literal["lines"] = "lines"
    title: str = ""
    lines: tuple[str, ...]
    listed: bool = False
    code: bool = False


class Figures(Closed):
    """A few figures in a row: name and value."""

    kind: Literal["figures"] = "figures"
    figures: tuple[tuple[str, str], ...]


class FrozenColumn(Closed):
    """The title of a column; numbers stand on the right."""

    title: str
    numeric: bool = False


class Table(Closed):
    """Rows of texts. `tones` gives each row a verdict, whose word is in one of its cells as well."""

    kind: Literal["table"] = "table"
    title: str = ""
    columns: tuple[FrozenColumn, ...]
    rows: tuple[tuple[str, ...], ...]
    tones: tuple[str, ...] = ()
    note: str = ""


class Chart(Closed):
    """A chart as SVG, drawn when the report was made, and the same as it fits on a phone. `alt` says what it
    shows.
    """

    kind: Literal["chart"] = "chart"
    title: str
    caption: str = ""
    alt: str
    svg: str
    narrow: str = ""


Section = Annotated[Lines | Figures | Table | Chart, Field(discriminator="kind")]


class Content(Closed):
    """Everything about a report. `data` are the frozen numbers by name, for programs."""

    schema_: Annotated[Literal["compilewatch.report/1"], Field(alias="schema")] = SCHEMA
    title: str
    subject: str
    link: str
    created_at: UtcDatetime
    created_by: str
    program_version: str
    data_version: int
    newest_result_at: UtcDatetime | None
    sections: tuple[Section, ...]
    environment: Table
    policy: Table
    data: dict[str, Any]

    model_config = ConfigDict(populate_by_name=True, serialize_by_alias=True)


def content_of(stored: dict[str, Any]) -> Content:
    """Stored content, checked. Raises ReportError where a later release wrote it."""
    try:
        return Content.model_validate(stored)
    except ValidationError as error:
        raise ReportError(
            "This report was made by another release of compilewatch and cannot be shown by this one.",
            "Use that release, or freeze the view again.",
        ) from error
