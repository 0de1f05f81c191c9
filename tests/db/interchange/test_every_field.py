"""Every field of every format, replaced by hostile values: trials, or one sentence that names the place."""

from __future__ import annotations

import copy
import csv
import io
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from compilewatch.db.errors import CompilewatchError
from compilewatch.db.interchange.formats import Format
from tests.db.interchange.reading import TOLD, read
from tests.db.interchange.tiny_files import TINY

HOSTILE: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 0.5, 1e308, -1e308, 10**22, 10**400, float("nan")),
    *("", "text", "5.0", "\0", "\ud800", "9" * 5000, [], {}, {"a": [[]]}),
)
SAMPLED = 60


def bent(text: str) -> Iterator[str]:
    """`text` with one of its values replaced."""
    is_document = text.startswith(("V", "window")) or text.lstrip()[:1] in "[{"
    if is_document and not text.startswith("[-"):
        yield from bent_documents(text)
    else:
        yield from bent_cells(text)


def bent_documents(text: str) -> Iterator[str]:
    """Of JSON in one piece, else of each line that holds an object, whatever stands before it."""
    whole = text.lstrip()[:1] in "[{" and "\n{" not in text.strip()
    lines = [text] if whole else text.splitlines(keepends=True)
    for number, line in enumerate(lines):
        head, brace, rest = ("", "", line) if whole else line.partition("{")
        if line.startswith("\t") or not (whole or brace):
            continue
        document = json.loads(brace + rest)
        for path in paths(document):
            for value in HOSTILE:
                changed = head + json.dumps(replaced(document, path, value)) + "\n"
                yield "".join([*lines[:number], changed, *lines[number + 1 :]])


def paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    if isinstance(value, dict):
        for key, part in value.items():
            yield from paths(part, (*path, key))
    elif isinstance(value, list):
        for index, part in enumerate(value[:3]):
            yield from paths(part, (*path, index))


def replaced(document: Any, path: tuple[Any, ...], value: Any) -> Any:
    if not path:
        return value
    changed = copy.deepcopy(document)
    place = changed
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    return changed


def bent_cells(text: str) -> Iterator[str]:
    rows = list(csv.reader(text.splitlines()))
    for row, cells in enumerate(rows):
        for column in range(len(cells)):
            for value in HOSTILE:
                cell = json.dumps(value) if isinstance(value, list | dict) else str(value)
                changed = [list(each) for each in rows]
                changed[row][column] = cell
                output = io.StringIO()
                csv.writer(output).writerows(changed)
                yield output.getvalue()


def outcomes(folder: Path, format: Format, chosen: int | None) -> tuple[int, int]:
    """How many variants came in and how many were refused; of `chosen` ones, or of all."""
    contents = TINY[format]
    variants = [(name, text) for name, whole in contents.items() for text in bent(whole)]
    if chosen is not None and len(variants) > chosen:
        variants = random.Random(str(format)).sample(variants, chosen)
    imported = 0
    for name, text in variants:
        for each, whole in contents.items():
            data = (text if each == name else whole).encode(errors="surrogatepass")
            (folder / each).write_bytes(data)
        imported += accepted(folder / next(iter(contents)), format)
    return imported, len(variants) - imported


def accepted(path: Path, format: Format) -> bool:
    refusal: CompilewatchError | None = None
    try:
        assert all(trial.to_json() for trial in read(path, format=format, **TOLD))
    except CompilewatchError as error:
        refusal = error
    if refusal is None:
        return True
    assert type(refusal) is not CompilewatchError
    assert refusal.message.startswith(str(path.parent)), refusal.message
    assert refusal.message.endswith("."), refusal.message
    assert len(refusal.message) < 1_000, refusal.message
    assert refusal.message.isprintable(), refusal.message
    assert refusal.next_step
    return False


@pytest.mark.parametrize("format", list(Format))
def test_some_values(tmp_path: Path, format: Format) -> None:
    imported, refused = outcomes(tmp_path, format, SAMPLED)
    assert imported > 0
    assert refused > 0


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("format", list(Format))
def test_all_values(tmp_path: Path, format: Format) -> None:
    imported, refused = outcomes(tmp_path, format, None)
    print(f"\n{format}: {imported + refused} variants, {imported} imported, {refused} refused")
    assert imported > 0
    assert refused > 0
