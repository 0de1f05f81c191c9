"""A closed selector names what is shown, whatever was chosen before."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page as Tab
from playwright.sync_api import expect

from dashboard.links.links import Link, Page
from dashboard.read.data import read_choices, read_choices_on
from dashboard.read.snapshots import Snapshot
from tests.dashboard.conftest import DATABASE
from tests.dashboard.serving import Served
from tests.e2e.browser import open_at

pytestmark = pytest.mark.browser


@pytest.mark.parametrize(("page", "title"), [(Page.OVERVIEW, "Overview"), (Page.MODES, "Modes")])
def test_the_box_of_builds_names_the_build_of_the_machine_that_was_chosen(
    tab: Tab,
    recorded_server: Served,
    recorded_url: str,
    page: Page,
    title: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(DATABASE, recorded_url)
    snapshot = Snapshot.now()
    choices = read_choices(snapshot)
    open_at(tab, f"{recorded_server.origin}/{Link(page=page).page.value}", title)
    for machine in (*choices.machines, next(iter(choices.machines))):
        tab.get_by_role("combobox", name="Machine").click()
        tab.get_by_role("option", name=choices.machines[machine], exact=True).click()
        expect(tab).to_have_url(lambda url: machine in url)
        here = read_choices_on(snapshot, machine)
        shown = tab.get_by_test_id("stSidebar").locator("[data-testid=stSelectbox]", has_text="Build")
        names = {f"Newest: {here.builds[build]}" for build in here.offered_builds}
        expect(shown).to_contain_text("Newest: ")
        tab.wait_for_timeout(1_500)
        assert any(
            name in shown.inner_text() or name in str(shown.locator("input").input_value()) for name in names
        )
