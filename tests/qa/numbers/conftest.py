"""Databases that pages read anew after each write."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.dashboard.conftest import _take_up_every_write

__all__ = ["_take_up_every_write"]


@pytest.fixture
def template(_sqlite_template: Path) -> Path:
    """An empty database."""
    return _sqlite_template
