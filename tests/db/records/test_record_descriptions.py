"""The JSON schema, the API's document and the reference page describe the record alike."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from compilewatch.dashboard.api.endpoints import ENDPOINTS
from compilewatch.db.records.trial import Trial
from docs.reference.generate import record_page

SCHEMA = Trial.model_json_schema(by_alias=True)
PARTS: dict[str, dict[str, Any]] = {"Trial": SCHEMA, **SCHEMA["$defs"]}


def fields() -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Part, name and description, on one line, of every field."""
    for part, schema in PARTS.items():
        for name, field in schema.get("properties", {}).items():
            yield part, name, field | {"description": " ".join(field.get("description", "").split())}


def test_the_schema_the_api_and_the_reference_say_the_same() -> None:
    page = record_page()
    told = next(each.schema(None) for each in ENDPOINTS if each.name == "trials_trial")
    in_api = {"Trial": told, **told["$defs"]}
    for part, name, field in fields():
        assert field["description"].replace("|", "\\|") in page, f"{part}.{name}"
        assert in_api[part]["properties"][name]["description"].split() == field["description"].split()
