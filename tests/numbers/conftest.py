"""Databases that pages read anew after each write."""

from __future__ import annotations

from pathlib import Path

import pytest

from dashboard.read.versions import REFRESH_THROTTLE


@pytest.fixture
def template(_sqlite_template: Path) -> Path:
    """An empty database."""
    return _sqlite_template


@pytest.fixture(autouse=True)
def _take_up_every_write(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests write faster than people measure."""
    monkeypatch.setattr(REFRESH_THROTTLE, "_every_s", 0.0)
