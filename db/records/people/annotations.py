"""What somebody wrote beside the figures: a note at a day or at a build, with a link."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, model_validator

from compilewatch.db.records.fields import Identifier, Name, Record, UtcDatetime

LONGEST_TEXT = 200


class Annotation(Record):
    """A note on the axis of time, of one machine or of all. `url` can only lead to the web."""

    annotation_id: Identifier
    text: Annotated[str, Field(min_length=1, max_length=LONGEST_TEXT)]
    url: Annotated[str, Field(max_length=2000, pattern=r"^https?://[^\s\x00-\x1f]+$")] | None = None
    author: Name
    written_at: UtcDatetime
    happened_at: UtcDatetime | None = None
    """The moment it is about; null where it is about a build."""
    build_id: str | None = None
    """The build it is about; null where it is about a moment."""
    machine_id: str | None = None
    """The machine it is about; null for all."""

    @model_validator(mode="after")
    def _about_one_thing(self) -> Self:
        if (self.happened_at is None) == (self.build_id is None):
            raise ValueError("an annotation is about a moment or about a build")
        return self
