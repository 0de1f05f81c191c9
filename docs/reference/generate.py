"""Writes the pages of the site: those of docs/, and the reference from the code: `make docs`."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from compilewatch.dashboard.api.endpoints import ENDPOINTS, PREFIX
from compilewatch.db.columns.case import CASE
from compilewatch.db.columns.column import Column, Threshold
from compilewatch.db.columns.trial import TRIAL
from compilewatch.db.interchange.formats import JOB_READERS, READERS
from compilewatch.db.judge.policy import Policy, policy_entries
from compilewatch.db.records.trial import Trial
from compilewatch.runner.config.settings import Settings

DOCS = Path(__file__).parents[1]

Json = Mapping[str, Any]


def pages() -> dict[str, str]:
    """Path below docs/ -> text of every generated page."""
    return {
        "commands.md": commands_page(),
        "reference/configuration.md": configuration_page(),
        "reference/record.md": record_page(),
        "reference/columns.md": columns_page(),
        "reference/policy.md": policy_page(),
        "reference/formats.md": formats_page(),
        "reference/routes.md": routes_page(),
        "licences.md": (DOCS.parent / "docker" / "licences.md").read_text(encoding="utf-8"),
    }


def commands_page() -> str:
    """Every command with its options."""
    command = [sys.executable, "-m", "typer", "compilewatch.runner.cli.app", "utils", "docs"]
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "commands.md"
        command += ["--name", "compilewatch", "--title", "Commands", "--output", str(page)]
        subprocess.run(command, cwd=DOCS.parent, check=True, capture_output=True)
        return page.read_text(encoding="utf-8")


def configuration_page() -> str:
    """Every key of compilewatch.toml, a table for each of its sections."""
    schema = Settings.model_json_schema()
    parts = [
        "# Configuration\n",
        "Keys of `compilewatch.toml`. A variable of the environment wins over the file "
        "(`COMPILEWATCH_RUN__TRIALS=5`), an option over both. `compilewatch config show` prints what is in "
        "force and where each value comes from, `compilewatch config check` what is wrong. "
        "`compilewatch.example.toml`, at the top of the repository, has every key to copy.\n",
        "## Top level\n",
        _table(("key", "value", "default", "meaning"), _keys(schema, schema["$defs"], own=True)),
    ]
    for definition in _sections(schema):
        title, _, text = definition.get("description", "").partition(": ")
        text = " ".join(text.split())
        parts += [f"## {title.strip('`')}\n", f"{text[:1].upper()}{text[1:]}\n"]
        parts.append(
            _table(("key", "value", "default", "meaning"), _keys(definition, schema["$defs"], own=False))
        )
    return "\n".join(parts)


def record_page() -> str:
    """Every field of the trial record."""
    schema = Trial.model_json_schema(by_alias=True)
    definitions = {"Trial": schema, **schema["$defs"]}
    parts = [
        "# Trial record\n",
        "One JSON object for each trial: what a measured process reports, the database keeps, and "
        "`compilewatch export --format jsonl` writes. Times are whole nanoseconds, sizes are bytes, "
        "timestamps are UTC. `null` means that the figure could not be measured, never zero. Unknown keys "
        "are refused.\n",
        "Its one version is `compilewatch.trial/1`. Files of before the first release may say "
        "`compilewatch.trial/2` or `compilewatch.trial/3`: with `compilewatch.trial/1` in their place they "
        "are read. `compilewatch schema` prints the record as JSON Schema.\n",
    ]
    for name, definition in definitions.items():
        if "properties" not in definition:
            continue
        about = " ".join(definition.get("description", "").split())
        parts += [f"## {name}\n", *([about + "\n"] if about else [])]
        parts.append(_table(("field", "value", "meaning"), _fields(definition, schema["$defs"])))
    return "\n".join(parts)


def columns_page() -> str:
    """Every column of trials and of cases."""
    schema = Trial.model_json_schema(by_alias=True)

    def meaning(column: Column) -> str:
        shared = column.label and column.holder in schema["properties"]
        place = column.place or (f"{column.holder}.{column.at}" if shared else "")
        if column.definition or not place:
            return column.definition
        definition: Json = schema
        *parts, last = place.split(".")
        for part in parts:
            field = definition["properties"][part]
            named = next(filter(None, map(_reference, (field, *field.get("anyOf", ())))))
            definition = schema["$defs"][named]
        return " ".join(definition["properties"][last].get("description", "").split())

    def row(column: Column) -> tuple[str, ...]:
        judged = "yes" if column.judged else "exactly" if column.threshold is Threshold.EXACT else ""
        return f"`{column.column}`", column.kind.value, column.unit, column.name, judged, meaning(column)

    headings = ("column", "type", "unit", "name", "judged", "meaning")
    trials = [each for each in TRIAL if each.in_frames or each.in_exports]
    return "\n".join(
        (
            "# Columns\n",
            "What frames, exported files and the API have of a trial and of a case. A figure that could not "
            "be measured is missing, never zero.\n",
            "## Trials\n",
            _table(headings, [row(each) for each in trials]),
            "## Cases\n",
            _table(headings, [row(each) for each in CASE]),
        )
    )


def policy_page() -> str:
    """Every constant of the judge, with its value and source."""
    rows = [(f"`{entry.name}`", f"`{entry.value}`", entry.meaning) for entry in policy_entries(Policy())]
    return "\n".join(
        (
            "# Policy\n",
            "When a change counts as real: every constant of the judge, its default and where it comes from. "
            "Set them under `[policy]` in the configuration. *Measured* refers to the tables of "
            "[how often the judge is wrong](../measured/verdicts.md).\n",
            _table(("constant", "default", "meaning and source"), rows),
        )
    )


def formats_page() -> str:
    """The rules, then every format that can be imported, as the module that reads it says."""
    rules, _, _ = (DOCS / "reference" / "formats.md").read_text(encoding="utf-8").partition("`make docs`")
    parts = [rules]
    names: dict[str, list[str]] = {}
    for name, reader in {**READERS, **JOB_READERS}.items():
        names.setdefault(reader.__module__, []).append(f"`{name}`")
    for module, mine in names.items():
        parts += [f"## {', '.join(mine)}\n", (sys.modules[module].__doc__ or "").strip() + "\n"]
    return "\n".join(parts)


def routes_page() -> str:
    """Every route of the HTTP API."""
    rows = [(f"`{PREFIX}{endpoint.path}`", endpoint.summary) for endpoint in ENDPOINTS]
    return "\n".join(("# Routes of the HTTP API\n", _table(("route", "answers"), rows)))


def _sections(schema: Json) -> Iterator[Json]:
    """Tables of the file in the order of the settings; the judge's constants have a page of their own."""
    for name, field in schema["properties"].items():
        reference = _reference(field)
        if reference and name != "policy":
            yield schema["$defs"][reference]


def _keys(definition: Json, definitions: Json, *, own: bool) -> Iterator[tuple[str, ...]]:
    required = definition.get("required", ())
    for name, field in definition.get("properties", {}).items():
        if own and _reference(field):
            continue
        default = "required" if name in required else _value(field.get("default"))
        # TOML has no null: a key is left out instead.
        kind = _kind(field, definitions).removesuffix(" or null")
        yield f"`{name}`", kind, default, " ".join(field.get("description", "").split())


def _fields(definition: Json, definitions: Json) -> Iterator[tuple[str, ...]]:
    for name, field in definition["properties"].items():
        yield f"`{name}`", _kind(field, definitions), " ".join(field.get("description", "").split())


def _reference(field: Json) -> str | None:
    """The definition that a field, or a list of them, is made of."""
    inner = field.get("items", field)
    found = inner.get("$ref") if isinstance(inner, Mapping) else None
    return str(found).rsplit("/", 1)[-1] if found else None


def _kind(field: Json, definitions: Json) -> str:
    """What a value may be, in words."""
    if "anyOf" in field:
        return " or ".join(dict.fromkeys(_kind(each, definitions) for each in field["anyOf"]))
    if "$ref" in field:
        name = str(field["$ref"]).rsplit("/", 1)[-1]
        return _choices(definitions[name]["enum"]) if "enum" in definitions[name] else name
    if "enum" in field or "const" in field:
        return _choices(field.get("enum") or [field["const"]])
    held = field.get("items") or field.get("additionalProperties")
    of = f" of {_kind(held, definitions)}" if isinstance(held, Mapping) and held else ""
    if field.get("format") == "date-time":
        return "time"
    return _WORDS.get(field.get("type"), "anything") + of


_WORDS = {
    "array": "list",
    "object": "table",
    "string": "text",
    "integer": "whole number",
    "number": "number",
    "boolean": "true or false",
    "null": "null",
    None: "anything",
}


def _choices(values: list[Any]) -> str:
    return ", ".join(f"`{value}`" for value in values)


def _value(default: Any) -> str:
    return "unset" if default is None else f"`{json.dumps(default)}`"


def _table(headings: tuple[str, ...], rows: Iterator[tuple[str, ...]] | list[tuple[str, ...]]) -> str:
    lines = [headings, tuple("---" for _ in headings), *rows]
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n" for line in lines)


def main() -> int:
    """Copy docs/ to the folder that is named and write the generated pages over their stubs."""
    if len(sys.argv) != 2:
        sys.stderr.write("usage: python -m docs.reference.generate FOLDER\n")
        return 2
    folder = Path(sys.argv[1])
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(DOCS, folder, ignore=shutil.ignore_patterns("*.py", "__pycache__"))
    for name, text in pages().items():
        (folder / name).write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
