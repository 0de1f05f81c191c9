"""Standard output that takes no more: a reader that went away, a disk that is full."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from compilewatch.db.engine.session import open_database
from compilewatch.db.store.trials import save_trials
from tests.builders import make_history
from tests.runner.terminal import COMMAND, environment

# Straight into the bytes, in one piece smaller than a buffer, and through rich.
EXPORT, LIST, TABLE = ("export",), ("list", "builds", "--json"), ("break-even",)


@pytest.fixture
def url(sqlite_url: str) -> str:
    with open_database(sqlite_url) as database:
        save_trials(database, make_history())
    return sqlite_url


def typed(arguments: tuple[str, ...], url: str, tmp_path: Path, redirect: str) -> tuple[int, str]:
    """Exit code and standard error of the command with its standard output sent elsewhere by a shell."""
    words = [*COMMAND, *arguments, "--db", url]
    done = subprocess.run(
        ["bash", "-c", f'"$@" {redirect}; exit "${{PIPESTATUS[0]}}"', "bash", *words],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return done.returncode, done.stderr


def test_a_reader_that_went_away_is_told_nothing(url: str, tmp_path: Path) -> None:
    assert typed(EXPORT, url, tmp_path, "| true") == (2, "")


@pytest.mark.parametrize("arguments", [LIST, TABLE], ids=" ".join)
def test_a_full_disk_is_one_sentence(url: str, tmp_path: Path, arguments: tuple[str, ...]) -> None:
    assert typed(arguments, url, tmp_path, "> /dev/full") == (
        2,
        "compilewatch: The output could not be written whole (No space left on device).\n"
        "  Free space or write elsewhere, then run it again.\n",
    )


def test_a_closed_standard_output_is_no_defect(url: str, tmp_path: Path) -> None:
    assert typed(TABLE, url, tmp_path, ">&-") == (0, "")
