"""A closed selector names what is shown, whatever was chosen before."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.builders import START, make_history, make_machine
from tests.dashboard.conftest import Store, store_once
from tests.dashboard.serving import served
from tests.e2e.browser import new_page, open_at

__all__ = ["store_once"]
pytestmark = pytest.mark.browser


@pytest.mark.slow
@pytest.mark.parametrize(("path", "title"), [("", "Today"), ("modes", "Models")])
def test_the_box_of_builds_names_the_build_of_the_machine_that_was_chosen(
    browser: Browser, store_once: Store, tmp_path: Path, path: str, title: str
) -> None:
    old = make_history(
        machines=[make_machine("old-box", threads=77)], workloads=["mlp"], builds=["2.10.0", "2.11.0"]
    )
    new = make_history(
        machines=["new-box"], workloads=["mlp"], builds=["2.14.0", "2.15.0"], start=START + timedelta(9)
    )
    newest = {"old-box": "Newest: torch 2.11.0", "new-box": "Newest: torch 2.15.0"}
    with (
        served(store_once([*old, *new]), tmp_path / "server.log") as running,
        new_page(browser, running.origin) as (tab, _),
    ):
        open_at(tab, f"{running.origin}/{path}", title)
        box = tab.get_by_role("combobox", name="Build")
        expect(box).to_have_value(newest["new-box"])
        for machine in ("old-box", "new-box", "old-box"):
            tab.get_by_role("combobox", name="Machine").click()
            tab.get_by_role("option", name=re.compile(machine)).last.click()
            expect(box).to_have_value(newest[machine])
