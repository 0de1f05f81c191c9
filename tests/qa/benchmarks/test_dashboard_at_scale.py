"""What a long history costs the reader: script CPU, bytes over the socket, first paint, and fifty at once.

One row is printed per page, database and size, against the limits; how to choose sizes: `large_databases`.
A first run is the one after new data came: one trial, or a whole night with a new build. What the first
look after a start of the server costs, when nothing is kept, is measured apart.
"""

from __future__ import annotations

import asyncio
import os
import random
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest
from playwright.sync_api import Page as Tab
from playwright.sync_api import sync_playwright

from compilewatch.dashboard.links.links import MENU, MODELS, PAGES, Page, heading
from compilewatch.dashboard.read.versions import EVERY_S
from compilewatch.db.engine.session import open_database
from compilewatch.db.records.trial import Trial
from compilewatch.db.store.trials import save_trials
from tests.dashboard.serving import Served, free_port, served
from tests.e2e.browser import CHROMIUM, INSTALL
from tests.qa.benchmarks.newest_night import night_of_newest_machine
from tests.qa.benchmarks.websocket_reader import Ran, Reader, reading

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(3600)]

RERUN_CPU_MS, FIRST_RUN_CPU_MS = 100, 1000
RERUN_KB = 50
STANDS_S, CLICK_S = 1.5, 0.7
FIRST_PAINT_MS = "performance.getEntriesByName('first-contentful-paint')[0].startTime"
STANDS = """title => {
    const all = selector => [...document.querySelectorAll(selector)]
    const drawn = (part, mark) => all(`[data-testid=${part}]`).every(each => each.querySelector(mark))
    return document.querySelector('[data-testid=stApp][data-test-script-state=notRunning]')
        && all('[data-testid=stHeading] h1').some(each => each.innerText.trim() === title)
        && !all('[data-testid=stSkeleton]').length
        && drawn('stVegaLiteChart', 'svg.marks, canvas.marks')
        && drawn('stDataFrame', '[data-testid=data-grid-canvas]')
        && performance.now()
}"""
USERS, THINK_S, MINUTES = 50, (2.0, 4.0), 1.0
MEDIAN_MS, P95_MS, SESSION_KB = 100, 1000, 1024
RERUNS, NEW_FILTERS, PAINTS = 20, 4, 5
READ_AHEAD_S = 5
# Without those that no entry of the menu leads to.
MEASURED = [page for pages in MENU.values() for page in pages]
# One page without its filter, with it, and so on: what a reader who compares two views does.
_FILTERS = {Page.RUNS: ("suite=nightly", ""), Page.REPORTS: ("", "")}


@pytest.fixture(scope="module")
def history(backend: str, size: int, history_url: str) -> tuple[str, str]:
    """What the database is called in the printed rows, and its address."""
    return f"{backend} | {size:,}", history_url


@pytest.fixture(scope="module")
def running(history: tuple[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(history[1], tmp_path_factory.mktemp("scale") / "log") as server:
        yield server


def _cpu_s(pid: int) -> float:
    used = psutil.Process(pid).cpu_times()
    return used.user + used.system


def _one_more_trial(url: str) -> None:
    """A trial of the newest run, as while a suite is measured."""
    _save(url, night_of_newest_machine(url, cases=1))


def _one_more_night(url: str) -> None:
    """Every case of the newest machine once, with a build that is new."""
    _save(url, night_of_newest_machine(url))


def _save(url: str, trials: list[Trial]) -> None:
    with open_database(url) as database:
        save_trials(database, trials)


async def _cost(running: Served, reader: Reader, page: Page, query: str = "") -> tuple[float, Ran]:
    """CPU milliseconds of the server for one run, and the run."""
    before = _cpu_s(running.pid)
    ran = await reader.run(page, query)
    await asyncio.sleep(0.05)
    return (_cpu_s(running.pid) - before) * 1000, ran


@pytest.mark.parametrize("page", MEASURED, ids=str)
def test_what_a_run_of_a_page_costs(history: tuple[str, str], running: Served, page: Page) -> None:
    async def measure() -> tuple[list[float], float, float, list[Ran], list[float]]:
        firsts = []
        async with reading(running.port) as reader:
            await reader.run(page)
            for write in [_one_more_trial] * 3 + [_one_more_night] * 3:
                await reader.run(Page.GUIDE)
                write(history[1])
                await asyncio.sleep(EVERY_S)  # by then pages take up what was written
                firsts.append((await _cost(running, reader, page))[0])
        filters = _FILTERS.get(page, ("task=inference", ""))
        async with reading(running.port) as reader:
            session, _ = await _cost(running, reader, page)
            for query in filters:
                await reader.run(page, query)
            before = _cpu_s(running.pid)
            reruns = [await reader.run(page, filters[place % 2]) for place in range(RERUNS)]
            await asyncio.sleep(0.1)
            rerun = (_cpu_s(running.pid) - before) * 1000 / RERUNS
            fresh = [
                (await _cost(running, reader, page, f"workload=model-{place:02d}"))[0]
                for place in range(3, 3 + NEW_FILTERS)
                if page is not Page.RUNS
            ]
        return firsts, session, rerun, reruns, fresh

    firsts, session, rerun, reruns, fresh = asyncio.run(measure())
    # The kernel counts a process's time in ticks of 10 ms.
    trial, night = (round(statistics.median(each)) for each in (firsts[:3], firsts[3:]))
    kilobytes = max(ran.received_bytes for ran in reruns) / 1000
    other = f"{statistics.median(fresh):.0f}" if fresh else "-"
    print(
        f"\n| {history[0]} | {PAGES[page].title} | {trial:.0f} | {night:.0f} | {session:.0f} | {rerun:.0f} "
        f"| {other} | {kilobytes:.0f} | load {os.getloadavg()[0]:.1f}"
    )
    assert max(trial, night, session) <= FIRST_RUN_CPU_MS
    assert rerun <= RERUN_CPU_MS
    assert kilobytes <= RERUN_KB


@pytest.mark.parametrize("page", MEASURED, ids=str)
def test_what_the_first_look_after_a_start_costs(
    history: tuple[str, str], page: Page, tmp_path: Path
) -> None:
    async def look(server: Served) -> float:
        async with reading(server.port) as reader:
            # What is read ahead after the start is not what is asked for here.
            await asyncio.sleep(READ_AHEAD_S)
            return (await _cost(server, reader, page))[0]

    with served(history[1], tmp_path / "log") as server:
        started = _cpu_s(server.pid)
        first = asyncio.run(look(server))
        ahead = (_cpu_s(server.pid) - started) * 1000 - first
    print(
        f"\n| {history[0]} | {PAGES[page].title} | {first:.0f} | read ahead {ahead:.0f} | "
        f"load {os.getloadavg()[0]:.1f}"
    )


@pytest.fixture
def bare_page(tmp_path: Path) -> Iterator[str]:
    """The address of `bare_page.py`, served by Streamlit as it is."""
    port = free_port()
    options = [f"--server.port={port}", "--server.headless=true", "--browser.gatherUsageStats=false"]
    command = [sys.executable, "-m", "streamlit", "run", str(Path(__file__).with_name("bare_page.py"))]
    with (tmp_path / "log").open("wb") as log, subprocess.Popen([*command, *options], stdout=log) as server:
        while not _answers(port):
            time.sleep(0.1)
        # Of a site of its own: what follows a page of its own site is opened by the same process of Chromium,
        # which has compiled Streamlit's code by then.
        yield f"http://localhost:{port}"
        server.terminate()


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture
def reader_tab(tmp_path: Path) -> Iterator[Tab]:
    """A tab of a Chromium as readers have it: with its cache on disk, and with the optimizing compilers of
    JavaScript, which that of the other tests does without.
    """
    if not CHROMIUM.exists():
        pytest.skip(f"needs Chromium; as root: {INSTALL}")
    with sync_playwright() as playwright:
        context = playwright.chromium.launch_persistent_context(
            tmp_path,
            executable_path=str(CHROMIUM),
            args=["--no-sandbox"],
            viewport={"width": 1440, "height": 900},
        )
        yield context.new_page()
        context.close()


def _stands_s(tab: Tab, title: str) -> float:
    """Seconds on the page's own clock until its title, charts and tables are drawn and its script has run;
    looked at before every frame, since whoever waits from outside looks only now and then.
    """
    return float(tab.wait_for_function(STANDS, arg=title, timeout=60_000).json_value()) / 1000


def _opened(tab: Tab, address: str, title: str) -> tuple[float, float]:
    """Seconds until the first paint, and until the page stands."""
    tab.goto("about:blank")
    tab.goto(address, wait_until="commit")
    stood = _stands_s(tab, title)
    return float(tab.evaluate(FIRST_PAINT_MS)) / 1000, stood


def _clicked(tab: Tab, title: str) -> float:
    """Seconds from a click in the menu until the page it leads to stands."""
    before = float(tab.evaluate("() => performance.now()")) / 1000
    tab.get_by_test_id("stPageLink").filter(has_text=title).first.click()
    return _stands_s(tab, title) - before


@pytest.mark.browser
@pytest.mark.parametrize("target", MEASURED, ids=str)
def test_first_paint(
    history: tuple[str, str], running: Served, reader_tab: Tab, bare_page: str, target: Page
) -> None:
    """Of a page first paint, title with chart and table, a click that leads there; and beside it what a page
    of Streamlit's own takes with one chart and one table, by turns with it.
    """
    title, away = heading(target), Page.WORKLOAD if target is Page.OVERVIEW else Page.OVERVIEW
    bare, painted, stood, clicked = [], [], [], []
    for _ in range(1 + PAINTS):
        bare.append(_opened(reader_tab, bare_page, "Bare")[1])
        first, whole = _opened(reader_tab, f"{running.origin}/{target.value}", title)
        painted.append(first)
        stood.append(whole)
        _opened(reader_tab, f"{running.origin}/{away.value}", heading(away))
        # The other tabs are a click on that page.
        clicked.append(0.0 if target in MODELS[1:] else _clicked(reader_tab, title))
    figures = [statistics.median(each[1:]) for each in (painted, stood, bare, clicked)]
    print(
        f"\n| {history[0]} | {PAGES[target].title} | "
        + " | ".join(f"{figure:.2f}" for figure in figures)
        + f" | {figures[1] / figures[2]:.2f} of the bare page | load {os.getloadavg()[0]:.1f}"
    )
    assert figures[1] <= STANDS_S
    assert figures[3] <= CLICK_S


def test_fifty_users(history: tuple[str, str], running: Served) -> None:
    views = [(page, query) for page in MEASURED for query in ("", "task=inference", "task=training")]
    views = [(page, query) for page, query in views if page is not Page.RUNS or not query]
    memory = psutil.Process(running.pid).memory_info
    waits: list[float] = []

    async def use(number: int, until: float) -> None:
        choice = random.Random(number)
        async with reading(running.port) as reader:
            await reader.run(Page.OVERVIEW)
            while time.monotonic() < until:
                await asyncio.sleep(choice.uniform(*THINK_S))
                page, query = choice.choice(views)
                waits.append((await reader.run(page, query)).seconds)

    async def everybody() -> tuple[int, float, float]:
        async with reading(running.port) as reader:
            for page, query in views:
                await reader.run(page, query)
        before, cpu = memory().rss, _cpu_s(running.pid)
        started = time.monotonic()
        users = (use(number, started + 60 * MINUTES) for number in range(USERS))
        await asyncio.gather(*users)
        lasted = time.monotonic() - started
        return memory().rss - before, (_cpu_s(running.pid) - cpu) / len(waits), len(waits) / lasted

    with ThreadPoolExecutor(1) as apart:  # the browser's event loop stays in this thread
        grown, cpu_s, per_second = apart.submit(asyncio.run, everybody()).result()
    median, p95 = statistics.median(waits) * 1000, statistics.quantiles(waits, n=20)[-1] * 1000
    kilobytes = grown / USERS / 1024
    print(
        f"\n| {history[0]} | {len(waits)} | {per_second:.1f} | {median:.0f} | {p95:.0f} | {cpu_s * 1000:.0f} "
        f"| {kilobytes:.0f} | load {os.getloadavg()[0]:.1f}"
    )
    assert median <= MEDIAN_MS
    assert p95 <= P95_MS
    assert kilobytes <= SESSION_KB
