"""Every field of the record says what it is, its unit, and when it is null: in the code, the JSON schema, the
API's document and the reference page alike.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dashboard.api import stored
from db.records.trial import Trial
from docs.reference.generate import record_page

SCHEMA = Trial.model_json_schema(by_alias=True)
PARTS: dict[str, dict[str, Any]] = {"Trial": SCHEMA, **SCHEMA["$defs"]}
UNITS = {
    "_ns": "nanosecond",
    "_bytes": "bytes",
    "_mhz": "MHz",
    "_w": "watts",
    "_c": "Celsius",
    "_mj": "millijoules",
    "_percent": "percent",
    "_fraction": "Share",
}


def fields() -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Part, name and description, on one line, of every field."""
    for part, schema in PARTS.items():
        for name, field in schema.get("properties", {}).items():
            yield part, name, field | {"description": " ".join(field.get("description", "").split())}


def is_nullable(field: dict[str, Any]) -> bool:
    return {"type": "null"} in field.get("anyOf", [])


def test_every_part_says_what_it_is() -> None:
    assert len(PARTS) > 20
    assert [name for name, schema in PARTS.items() if not schema.get("description")] == []


def test_every_field_says_what_it_is() -> None:
    said = {f"{part}.{name}": field["description"] for part, name, field in fields()}
    assert len(said) > 150
    assert [name for name, text in said.items() if not text.endswith(".")] == []


def test_a_field_that_may_be_null_says_when() -> None:
    silent = [
        f"{part}.{name}"
        for part, name, field in fields()
        if is_nullable(field) and " null" not in field["description"] + PARTS[part]["description"]
    ]
    assert silent == []


def test_a_figure_says_its_unit() -> None:
    silent = [
        f"{part}.{name}: {unit}"
        for part, name, field in fields()
        for ending, unit in UNITS.items()
        if name.endswith(ending) and unit not in field["description"] + PARTS[part]["description"]
    ]
    assert silent == []


def test_the_schema_the_api_and_the_reference_say_the_same() -> None:
    page = record_page()
    told = stored.trial_schema(None)
    in_api = {"Trial": told, **told["$defs"]}
    for part, name, field in fields():
        assert field["description"].replace("|", "\\|") in page, f"{part}.{name}"
        assert in_api[part]["properties"][name]["description"].split() == field["description"].split()


def test_a_description_is_more_than_the_name() -> None:
    words = {
        f"{part}.{name}": field["description"].rstrip(".").lower().replace(" ", "_")
        for part, name, field in fields()
    }
    assert [name for name, said in words.items() if name.endswith(f".{said}")] == []
