"""The hash of one's own code: what was imported from the work tree, and nothing else."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

HASH = (
    "import sys; sys.path[:0] = sys.argv[2:]; import own; "
    "from compilewatch.runner.worker.trial import imported_sources; "
)
PRINT = "print(imported_sources(sys.argv[1])[0])"


def hash_of(root: Path, more: str = "") -> str:
    command = [sys.executable, "-c", HASH + more + PRINT, str(root), str(root)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "part").mkdir()
    (tmp_path / "own.py").write_text("import part.inner\n", encoding="utf-8")
    (tmp_path / "part" / "__init__.py").write_text("", encoding="utf-8")
    (tmp_path / "part" / "inner.py").write_text("X = 1\n", encoding="utf-8")
    (tmp_path / "unused.py").write_text("X = 1\n", encoding="utf-8")
    return tmp_path


def test_it_changes_with_what_is_imported_and_with_nothing_else(root: Path) -> None:
    before = hash_of(root)
    (root / "unused.py").write_text("X = 2\n", encoding="utf-8")
    (root / "README.md").write_text("words", encoding="utf-8")
    assert hash_of(root) == before
    assert hash_of(root, "import unused; ") != before
    (root / "part" / "inner.py").write_bytes(b"X = 1\r\n")
    assert hash_of(root) == before
    (root / "part" / "inner.py").write_text("X = 2\n", encoding="utf-8")
    assert hash_of(root) != before


def test_it_is_the_same_in_another_checkout(root: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    other = tmp_path_factory.mktemp("checkout") / "project"
    root.rename(other)
    moved = hash_of(other)
    other.rename(root)
    assert hash_of(root) == moved


def test_installed_packages_and_what_the_compiler_wrote_do_not_count(root: Path) -> None:
    before = hash_of(root)
    installed = root / ".venv" / "lib" / "site-packages"
    written = root / "cache"
    for directory in (installed, written):
        directory.mkdir(parents=True)
    (installed / "package.py").write_text("X = 1\n", encoding="utf-8")
    (written / "kernel.py").write_text("X = 1\n", encoding="utf-8")
    more = (
        f"import os; os.environ['TORCHINDUCTOR_CACHE_DIR'] = {str(written)!r}; "
        f"sys.path += [{str(installed)!r}, {str(written)!r}]; import package, kernel; "
    )
    assert hash_of(root, more) == before
