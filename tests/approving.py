"""Approved documents: what a page, a command or a report says, whole, beside the text in tests/approved.

After a change that is wanted: `COMPILEWATCH_APPROVE=1 .venv/bin/python -m pytest FILE`, then read the diff.
"""

from __future__ import annotations

import os
from pathlib import Path

APPROVED = Path(__file__).with_name("approved")


def approve(name: str, text: str) -> None:
    """Compare `text` with the approved one of this name, or write it where that is asked for."""
    path = APPROVED / f"{name}.txt"
    told = "\n".join(line.rstrip() for line in text.splitlines()) + "\n"
    if os.environ.get("COMPILEWATCH_APPROVE"):
        path.write_text(told, encoding="utf-8")
    assert told == path.read_text(encoding="utf-8")
