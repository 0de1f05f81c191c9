"""What a rerun of each page costs the server, and how long a reader waits for the first paint."""

from __future__ import annotations

import os
import re
import statistics
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from playwright.sync_api import Browser, Page, expect

from dashboard.links.links import TITLES
from dashboard.links.links import Page as DashboardPage
from db.engine.session import open_database
from db.store.trials import save_trials
from tests.builders import make_history
from tests.dashboard.serving import Served, served
from tests.e2e.browser import CHROMIUM, INSTALL, SETTLED, chromium, new_page, open_at, settle

pytestmark = [pytest.mark.benchmark, pytest.mark.browser]

RERUN_CPU_MS = 50
FIRST_PAINT_S = 2
RERUNS = 20
PAGES = [page for page in DashboardPage if page is not DashboardPage.GUIDE]
FILTERED = [page for page in PAGES if page not in {DashboardPage.RUNS, DashboardPage.REPORTS}]
# The others draw no chart from a single build.
CHARTED = {
    DashboardPage.OVERVIEW,
    DashboardPage.TRENDS,
    DashboardPage.MODES,
    DashboardPage.BREAK_EVEN,
    DashboardPage.COLD_START,
}


@pytest.fixture(scope="module")
def smoke_url(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The shape of the smoke suite: four workloads, eager and default, three trials, one run."""
    url = f"sqlite:///{tmp_path_factory.mktemp('speed') / 'smoke.db'}"
    with open_database(url, migrate=True) as database:
        names = ("bert-base", "resnet-50", "mlp", "elementwise")
        save_trials(database, make_history(workloads=names, builds=("2.13.0",), samples=50))
    return url


@pytest.fixture(scope="module")
def running(smoke_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(smoke_url, tmp_path_factory.mktemp("speed") / "log") as server:
        yield server


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if not CHROMIUM.exists():
        pytest.skip(f"needs Chromium; as root: {INSTALL}")
    with chromium() as started:
        yield started


def _cpu_s(pid: int) -> float:
    used = psutil.Process(pid).cpu_times()
    return used.user + used.system


def _rerun(page: Page, place: int) -> None:
    """Switch a filter of the sidebar on or off, and wait until the page has settled again."""
    page.get_by_test_id("stSidebar").get_by_role("button", name="Inference").click()
    expect(page).to_have_url(re.compile("task=inference" if place % 2 == 0 else r"^((?!task=).)*$"))
    page.wait_for_selector(SETTLED)


@pytest.mark.parametrize("target", FILTERED, ids=str)
def test_server_cpu_per_rerun(browser: Browser, running: Served, target: DashboardPage) -> None:
    with new_page(browser, running.origin) as (page, _):
        open_at(page, f"{running.origin}/{target.value}", TITLES[target])
        for place in range(4):
            _rerun(page, place)
        before = _cpu_s(running.pid)
        for place in range(RERUNS):
            _rerun(page, place)
        page.wait_for_timeout(200)
        cpu_ms = (_cpu_s(running.pid) - before) / RERUNS * 1000
    print(f"\n{TITLES[target]}: {cpu_ms:.1f} ms CPU of the server per rerun (limit {RERUN_CPU_MS})")
    assert cpu_ms <= RERUN_CPU_MS


def test_first_paint_with_a_warm_browser_cache(browser: Browser, running: Served) -> None:
    with new_page(browser, running.origin) as (page, _):
        for target in PAGES:
            open_at(page, f"{running.origin}/{target.value}", TITLES[target])
        for target in PAGES:
            waits = [_paint_s(page, running, target) for _ in range(5)]
            print(
                f"\n{TITLES[target]}: first paint after {min(waits):.2f} s at best, median "
                f"{statistics.median(waits):.2f} s (limit {FIRST_PAINT_S}; load {os.getloadavg()[0]:.1f})"
            )
            # other work on the machine can only add to it, so the best of five is judged
            assert min(waits) <= FIRST_PAINT_S


def _paint_s(page: Page, running: Served, target: DashboardPage) -> float:
    page.goto("about:blank")
    started = time.perf_counter()
    page.goto(f"{running.origin}/{target.value}", wait_until="commit")
    settle(page, TITLES[target])
    if target in CHARTED:
        expect(page.locator("svg.marks").first).to_be_visible()
    return time.perf_counter() - started


def test_start_of_the_server(smoke_url: str, tmp_path: Path) -> None:
    started = time.perf_counter()
    with served(smoke_url, tmp_path / "log"):
        print(f"\nserver up and warm after {time.perf_counter() - started:.1f} s")
