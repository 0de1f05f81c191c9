"""Every selector of every page in a link: after a reload, in a fresh browser, back and forward."""

from __future__ import annotations

from dataclasses import fields, replace
from datetime import timedelta
from typing import Any

import pytest
from playwright.sync_api import Browser, expect
from playwright.sync_api import Page as Tab

from compilewatch.dashboard.links.links import SELECTORS, Link, Page, heading, href, keys_of, read_url
from compilewatch.db.engine.session import open_database
from compilewatch.db.judge.compare.recorded_regressions import changes_of
from compilewatch.db.queries.trials import trials_frame
from compilewatch.db.service.regressions import standing_regressions
from tests.builders import START
from tests.dashboard.conftest import REPORT_ID
from tests.dashboard.serving import Served
from tests.e2e.browser import new_page, open_at, permalink, settle

pytestmark = pytest.mark.browser

_PATIENCE = 25
LINKED = [pytest.param(page, id=page.value or "overview") for page in Page if page is not Page.GUIDE]


@pytest.fixture(scope="module")
def chosen(recorded_url: str) -> dict[str, Any]:
    """For every selector a value that is not its default and shows something in this database."""
    with open_database(recorded_url, read_only=True) as database:
        trials = trials_frame(database)
        (acknowledged,) = (each for each in standing_regressions(database) if each.triage)
    gpu = trials[trials["device"] == "cuda"]
    builds = list(gpu.sort_values("started_at")["build_id"].unique())
    others = sorted(set(trials["machine_id"]) - set(gpu["machine_id"]))
    trial = gpu[(gpu["workload"] == "bert-base") & (gpu["strategy"] == "default")].iloc[0]

    def runs_of(build: str) -> tuple[str, ...]:
        return tuple(sorted(gpu.loc[gpu["build_id"] == build, "run_id"].unique()))

    return {
        "machine": trial["machine_id"],
        "build": trial["build_id"],
        "build_run": runs_of(trial["build_id"]),
        "base_run": runs_of(builds[-2]),
        "head_run": runs_of(builds[-1]),
        "base": builds[-2],
        "head": builds[-1],
        "suite": "standard",
        "task": ("inference",),
        "workload": ("bert-base",),
        "strategy": ("default",),
        "focus": "bert-base",
        "focus_strategy": "default",
        "metric": "speedup",
        "axis": "torch",
        "scale": "log",
        "since": (START - timedelta(days=30)).date(),
        "until": START.date(),
        "goal": "steps",
        "steps": 200,
        "restarts": 3,
        "price": 4.5,
        "group": ("undecided",),
        "against": others[0],
        "against_price": 3.5,
        "cache": ("cold",),
        "status": ("ok",),
        "source": ("measured",),
        "state": ("acknowledged",),
        "change": tuple(change.change_id for change in changes_of([acknowledged.regression])),
        "regression": (acknowledged.regression.regression_id,),
        "run": trial["run_id"],
        "trial": trial["trial_id"],
        "report": REPORT_ID,
    }


def _link(page: Page, chosen: dict[str, Any]) -> Link:
    values = {key: chosen[key] for key in keys_of(page)}
    if page is Page.REGRESSIONS:
        # What is recorded was judged the other way round.
        values |= {"base": chosen["head"], "head": chosen["base"]}
        values |= {"base_run": chosen["head_run"], "head_run": chosen["base_run"]}
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
        assert value != getattr(Link(), key), key


@pytest.mark.slow
@pytest.mark.parametrize("target", LINKED)
def test_every_selector_survives_reload_and_a_fresh_browser(
    browser: Browser, recorded_server: Served, chosen: dict[str, Any], target: Page
) -> None:
    link = _link(target, chosen)
    with new_page(browser, recorded_server.origin) as (tab, trouble):
        open_at(tab, f"{recorded_server.origin}/{href(link)}", heading(target))
        expect(tab.get_by_test_id("stAlertContentWarning")).to_have_count(0)
        seen, address = _seen(tab), permalink(tab)
        read, problems = read_url(address.removeprefix(recorded_server.origin))
        assert (replace(read, data=None), problems) == (link, ())
        tab.reload()
        settle(tab, heading(target))
        assert _seen(tab) == seen
        assert permalink(tab) == address
        assert trouble.found == []
    with new_page(browser, recorded_server.origin) as (tab, trouble):
        open_at(tab, address, heading(target))
        assert _seen(tab) == seen
        assert permalink(tab) == address
        assert trouble.found == []
