"""`make audit`: what is known is shown, and what nobody could be asked about does not pass for sound."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.house.test_makefile import checkout, make

__all__ = ["checkout"]

# As pip-audit does it: what it found goes to the file after --output, why it failed to standard error.
AUDITOR = """#!/bin/bash
while [ "$1" != --output ]; do shift; done
{acts}
"""
FOUND = 'echo "jinja2 3.1.0 PYSEC-1 3.1.6" > "$2"; echo "Found 1 known vulnerability" >&2; exit 1'
AWAY = 'echo "ERROR:pip_audit._cli:alembic: Dependency not found and could not be audited" >&2; exit 1'
SILENT = "exit 1"
CRASH = 'echo "Traceback (most recent call last):" >&2; exit 1'
SOUND = 'echo "No known vulnerabilities found" >&2; exit 0'


def audit(checkout: Path, acts: str) -> tuple[int, str, str]:
    auditor = checkout / ".venv" / "audit" / "bin" / "pip-audit"
    auditor.parent.mkdir(parents=True)
    auditor.write_text(AUDITOR.format(acts=acts), encoding="utf-8")
    auditor.chmod(0o755)
    done = make("audit", folder=checkout)
    said = [line for line in done.stderr.splitlines() if not line.startswith("make: ***")]
    return done.returncode, done.stdout, "\n".join(said)


def test_a_weakness_is_shown_and_fails(checkout: Path) -> None:
    code, out, _ = audit(checkout, FOUND)
    assert code != 0
    assert "PYSEC-1" in out


@pytest.mark.parametrize(
    ("acts", "why"),
    [(AWAY, "alembic: Dependency not found"), (SILENT, "audit.log"), (CRASH, "audit.log")],
    ids=["no answer", "silent", "crash"],
)
def test_what_was_not_looked_up_is_said_in_one_sentence_and_fails(
    checkout: Path, acts: str, why: str
) -> None:
    code, out, said = audit(checkout, acts)
    assert code != 0
    assert out == ""
    assert len(said.splitlines()) == 1
    assert said.startswith("The pinned packages were not looked up")
    assert why in said
    assert "Traceback" not in said


def test_nothing_known_passes_and_says_so(checkout: Path) -> None:
    code, out, said = audit(checkout, SOUND)
    assert (code, out.strip(), said) == (0, "No pinned package has a known weakness.", "")
