"""Every selector of every page in a link: after a reload, in a fresh browser, back and forward."""

from __future__ import annotations

from dataclasses import fields, replace
from datetime import timedelta
from typing import Any

import pytest
from playwright.sync_api import Browser, expect
from playwright.sync_api import Page as Tab

from dashboard.links import SELECTORS, TITLES, Link, Page, href, keys_of, read_url
from db.queries.regressions import standing_regressions
from db.queries.trials import trials_frame
from db.session import open_database
from tests.builders import START
from tests.dashboard.conftest import REPORT_ID
from tests.dashboard.serving import Served
from tests.e2e.browser import new_page, open_at, permalink, settle

pytestmark = pytest.mark.browser

_PATIENCE = 25
# Those with the most selectors in the default suite, the others among the slow tests.
_ALWAYS = (Page.TRENDS, Page.UPGRADE, Page.TRIAL)
LINKED = [
    pytest.param(page, marks=() if page in _ALWAYS else pytest.mark.slow, id=page.value or "overview")
    for page in Page
    if page is not Page.GUIDE
]


@pytest.fixture(scope="module")
def chosen(recorded_url: str) -> dict[str, Any]:
    """For every selector a value that is not its default and shows something in this database."""
    with open_database(recorded_url, read_only=True) as database:
        trials = trials_frame(database)
        (acknowledged,) = (each for each in standing_regressions(database) if each.triage)
    gpu = trials[trials["device"] == "cuda"]
    builds = list(gpu.sort_values("started_at")["build_id"].unique())
    trial = gpu[(gpu["workload"] == "bert-base") & (gpu["strategy"] == "default")].iloc[0]
    return {
        "machine": trial["machine_id"],
        "build": trial["build_id"],
        "base": builds[0],
        "head": builds[-1],
        "suite": "standard",
        "task": ("inference",),
        "workload": ("bert-base",),
        "strategy": ("default",),
        "focus": "bert-base",
        "focus_strategy": "default",
        "metric": "latency",
        "axis": "torch",
        "scale": "log",
        "since": (START - timedelta(days=30)).date(),
        "until": START.date(),
        "goal": "steps",
        "steps": 200,
        "restarts": 3,
        "price": 4.5,
        "cache": ("cold",),
        "status": ("ok",),
        "source": ("measured",),
        "state": ("acknowledged",),
        "regression": (acknowledged.regression.regression_id,),
        "run": trial["run_id"],
        "trial": trial["trial_id"],
        "report": REPORT_ID,
    }


def _link(page: Page, chosen: dict[str, Any]) -> Link:
    values = {key: chosen[key] for key in keys_of(page)}
    if page is Page.TRIAL:
        values["trial"] = None  # with one trial open the filters of the list are not drawn
    return Link(page=page, **values)


def _seen(tab: Tab) -> list[str]:
    """All that the page says, its charts by the descriptions of their marks, once nothing more is drawn."""
    before, same = _read(tab), 0
    for _ in range(_PATIENCE):
        tab.wait_for_timeout(400)
        now = _read(tab)
        same = same + 1 if now == before else 0
        before = now
        if same == 3:
            break
    return before


def _read(tab: Tab) -> list[str]:
    main = tab.get_by_test_id("stMain")
    marks: list[str] = main.locator("path[aria-label]").evaluate_all(
        "(marks) => marks.map((mark) => mark.getAttribute('aria-label'))"
    )
    return [*main.get_by_test_id("stMarkdownContainer").all_inner_texts(), *marks]


def test_every_selector_is_tried(chosen: dict[str, Any]) -> None:
    assert set(chosen) == set(SELECTORS)
    assert {field.name for field in fields(Link)} - {"page", "data"} == set(SELECTORS)
    for key, value in chosen.items():
        assert value != SELECTORS[key][0].default, key


@pytest.mark.parametrize("target", LINKED)
def test_every_selector_survives_reload_and_a_fresh_browser(
    browser: Browser, recorded_server: Served, chosen: dict[str, Any], target: Page
) -> None:
    link = _link(target, chosen)
    with new_page(browser, recorded_server.origin) as (tab, trouble):
        open_at(tab, f"{recorded_server.origin}/{href(link)}", TITLES[target])
        expect(tab.get_by_test_id("stAlertContentWarning")).to_have_count(0)
        seen, address = _seen(tab), permalink(tab)
        read, problems = read_url(address.removeprefix(recorded_server.origin))
        assert (replace(read, data=None), problems) == (link, ())
        tab.reload()
        settle(tab, TITLES[target])
        assert _seen(tab) == seen
        assert permalink(tab) == address
        assert trouble.found == []
    with new_page(browser, recorded_server.origin) as (tab, trouble):
        open_at(tab, address, TITLES[target])
        assert _seen(tab) == seen
        assert permalink(tab) == address
        assert trouble.found == []


def test_back_and_forward_go_through_pages_and_filters(browser: Browser, recorded_server: Served) -> None:
    with new_page(browser, recorded_server.origin) as (tab, trouble):
        open_at(tab, f"{recorded_server.origin}/modes", "Modes")
        sidebar = tab.get_by_test_id("stSidebar")
        sidebar.get_by_role("button", name="Inference").click()
        tab.wait_for_url("**/modes?task=inference")
        settle(tab, "Modes")
        tab.get_by_role("radio", name="Memory").click()
        tab.wait_for_url("**/modes?*goal=memory*")
        settle(tab, "Modes")
        sidebar.get_by_role("link", name="Trends").click()
        settle(tab, "Trends")
        where = ["/trends?task=inference", "goal=memory", "/modes?task=inference", "/modes"]
        _expect_at(tab, where[0])
        for address, title in ((where[1], "Modes"), (where[2], "Modes"), (where[3], "Modes")):
            _press_until(tab, tab.go_back, address)
            settle(tab, title)
        expect(sidebar.get_by_role("button", name="Inference")).not_to_have_attribute("aria-pressed", "true")
        for address, title in ((where[2], "Modes"), (where[1], "Modes"), (where[0], "Trends")):
            _press_until(tab, tab.go_forward, address)
            settle(tab, title)
        assert trouble.found == []


def _expect_at(tab: Tab, address: str) -> None:
    assert address in tab.url


def _press_until(tab: Tab, press: Any, address: str) -> None:
    """Streamlit records a change of page as more than one step: at most two presses for one."""
    for _ in range(2):
        press()
        settle(tab, TITLES[Page(tab.url.split("?")[0].rstrip("/").rpartition("/")[2])])
        if tab.url.endswith(address) or ("goal" in address and address in tab.url):
            return
    raise AssertionError(f"after two presses the browser is at {tab.url}, not {address}")
