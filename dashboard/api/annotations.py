"""Annotations over HTTP: the route that writes one, for tokens of its own scope."""

from __future__ import annotations

from datetime import date
from typing import Any

from pydantic import BaseModel, ConfigDict, Field
from starlette.requests import Request
from starlette.responses import Response

from compilewatch.dashboard.api.queries import with_ids
from compilewatch.dashboard.api.written import written
from compilewatch.dashboard.read.database import reader
from compilewatch.dashboard.write.annotating import save
from compilewatch.db.records.access import Scope
from compilewatch.db.records.people import LONGEST_TEXT, Annotation


class AnnotationSpec(BaseModel):
    """A note at a day or at a build, that of today where neither is named, of one machine or of all, of
    one workload or of all.
    """

    model_config = ConfigDict(extra="forbid")

    text: str = Field(min_length=1, max_length=LONGEST_TEXT)
    url: str = Field(default="", max_length=2000, pattern=r"^(https?://[^\s\x00-\x1f]+)?$")
    day: date | None = None
    build: str | None = Field(default=None, description="as `compilewatch compare` names it")
    machine: str | None = Field(default=None, description="its name or id")
    workload: str | None = Field(default=None, description="its name")


async def create(request: Request) -> Response:
    """Write what the body says: 201 with the note. Raises CompilewatchError."""
    return await written(request, Scope.ANNOTATIONS, AnnotationSpec, _save)


def _save(spec: AnnotationSpec, by: str) -> dict[str, Any]:
    of_one = (spec.workload,) if spec.workload else ()
    named = with_ids(reader(), {"machine": spec.machine, "build": spec.build, "workload": of_one})
    note: Annotation = save(
        text=spec.text,
        url=spec.url,
        by=by,
        day=spec.day,
        build_id=named["build"],
        machine_id=named["machine"],
        workload=spec.workload,
    )
    return note.model_dump(mode="json")
