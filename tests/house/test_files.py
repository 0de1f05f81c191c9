"""What is committed holds no path of a machine, no host of a package registry, and nothing that is huge."""

import re
from pathlib import Path

from tests.house.tracked import ROOT, project_files

BINARY = {".png", ".webp", ".ico", ".woff2", ".db"}
# A test of shortened paths may speak of /home/someone/; nobody lives there.
HOME_OF_A_PERSON = re.compile(r"(?<![\w.])/(?:root|home/(?!someone/)\w+|Users/\w+)/")
REGISTRY_HOST = re.compile(
    "|".join(("pypi" + r"\.org", "pythonhosted" + r"\.org", r"deb\." + r"debian\.org"))
)
LARGEST_FILE_BYTES = 1_000_000
# A recorded history is evidence: every sample of every process.
HISTORY = "docs/measured/*-history.jsonl"
LARGEST_HISTORY_BYTES = 3_000_000


def texts() -> list[tuple[Path, str]]:
    """Return each text file of the project with its content."""
    paths = [path for path in project_files() if path.suffix not in BINARY]
    return [(path, (ROOT / path).read_text(encoding="utf-8")) for path in paths]


def test_no_path_of_a_machine() -> None:
    here = re.compile(re.escape(f"{ROOT}/"))
    patterns = (HOME_OF_A_PERSON, here)
    assert [str(path) for path, text in texts() if any(pattern.search(text) for pattern in patterns)] == []


def test_paths_of_a_machine_are_recognized() -> None:
    assert HOME_OF_A_PERSON.search("see " + "/home/" + "ada/notes")
    assert not HOME_OF_A_PERSON.search("/home/someone/notes")
    assert not HOME_OF_A_PERSON.search("https://example.org/home/page/")


def test_no_registry_host() -> None:
    assert [str(path) for path, text in texts() if REGISTRY_HOST.search(text)] == []


def test_no_large_file() -> None:
    sizes = {path: (ROOT / path).stat().st_size for path in project_files()}
    limits = {path: LARGEST_HISTORY_BYTES if path.match(HISTORY) else LARGEST_FILE_BYTES for path in sizes}
    assert {str(path): size for path, size in sizes.items() if size > limits[path]} == {}
