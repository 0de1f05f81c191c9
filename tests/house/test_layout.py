"""A file has one subject that its name tells, and fits in a head."""

import re

from tests.house.tracked import ROOT, project_files, room_files

LINES_PER_FILE = 500
EMPTY_NAME = re.compile(r"(utils?|helpers?|common|misc|stuff|base)")
LEFT_OVER = re.compile("|".join(("TO" + "DO", "FIX" + "ME", "X" + "XX", "raise Not" + "Implemented")))


def test_no_file_outgrows_its_subject() -> None:
    lengths = {str(path): len((ROOT / path).read_bytes().splitlines()) for path in room_files()}
    assert {path: length for path, length in lengths.items() if length > LINES_PER_FILE} == {}


def test_names_tell_a_subject() -> None:
    parts = {(str(path), part) for path in project_files() for part in (*path.parts[:-1], path.stem)}
    assert [path for path, part in parts if EMPTY_NAME.fullmatch(part)] == []


def test_code_is_finished() -> None:
    found = [
        f"{path}:{number}"
        for path in project_files()
        if path.suffix == ".py"
        for number, line in enumerate((ROOT / path).read_text(encoding="utf-8").splitlines(), start=1)
        if LEFT_OVER.search(line)
    ]
    assert found == []


def test_every_test_file_mirrors_a_room_or_says_what_it_tests() -> None:
    rooms = {"db", "runner", "dashboard", "house", "e2e", "gpu", "benchmarks", "faults"}
    tests = [path for path in project_files() if path.parts[0] == "tests" and path.name.startswith("test_")]
    assert [str(path) for path in tests if path.parts[1] not in rooms] == []
