"""Debian's Chromium on a page of the dashboard, with everything recorded that must not happen."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from playwright.sync_api import Browser, Locator, Page, Request, expect, sync_playwright

_INSTALLED = [Path("/usr/bin/chromium-headless-shell"), Path("/usr/bin/chromium")]
"""The first draws no window around the page."""
CHROMIUM = Path(
    os.environ.get("COMPILEWATCH_TEST_CHROMIUM") or next(filter(Path.exists, _INSTALLED), _INSTALLED[0])
)
INSTALL = "apt-get update && apt-get install -y --no-install-recommends chromium-headless-shell"
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-extensions",
    "--disable-sync",
    "--no-first-run",
    # Pages are opened once, so what the optimizing compilers and animations cost never comes back.
    "--js-flags=--no-opt --no-maglev",
    "--force-prefers-reduced-motion",
]
SETTLED = '[data-testid="stApp"][data-test-script-state="notRunning"]'
PAINTED_TIMEOUT_MS = 60_000
LOUD = ("error", "warning")


@dataclass
class Trouble:
    """What a page must not do: say errors or warnings on the console, ask others, get bad answers."""

    origin: str
    found: list[str] = field(default_factory=list)

    def watch(self, page: Page) -> None:
        page.on("console", lambda said: self._add(said.type in LOUD, f"console {said.type}: {said.text}"))
        page.on("pageerror", lambda error: self._add(True, f"exception: {error}"))
        page.on("request", lambda request: self._add(self._foreign(request.url), f"foreign: {request.url}"))
        page.on("requestfailed", self._failed)
        page.on(
            "response",
            lambda answer: self._add(answer.status >= 400, f"{answer.status}: {answer.url}"),
        )

    def _add(self, bad: bool, text: str) -> None:
        if bad:
            self.found.append(text)

    def _failed(self, request: Request) -> None:
        # leaving a page aborts what it was still loading
        self._add(request.failure != "net::ERR_ABORTED", f"failed: {request.url} {request.failure}")

    def _foreign(self, url: str) -> bool:
        return not url.startswith((self.origin, self.origin.replace("http", "ws"), "data:", "blob:"))


@contextmanager
def chromium() -> Iterator[Browser]:
    """What is expected of its pages may take as long as painting them: other tests use the machine too."""
    expect.set_options(timeout=PAINTED_TIMEOUT_MS)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(CHROMIUM), args=FLAGS)
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def new_page(
    browser: Browser, origin: str, *, width: int = 1440, height: int = 900, scheme: str = "light"
) -> Iterator[tuple[Page, Trouble]]:
    """A page of a fresh context: no cache, no session, no storage of another."""
    context = browser.new_context(
        viewport={"width": width, "height": height},
        color_scheme=scheme,  # type: ignore[arg-type]
        permissions=["clipboard-read", "clipboard-write"],
    )
    context.set_default_timeout(PAINTED_TIMEOUT_MS)
    trouble = Trouble(origin)
    page = context.new_page()
    trouble.watch(page)
    try:
        yield page, trouble
    finally:
        context.close()


def open_at(page: Page, url: str, title: str) -> None:
    """Go to `url` and wait until the script has run and the page's title is there."""
    page.goto(url)
    settle(page, title)


def visit(page: Page, url: str, title: str) -> None:
    """Go to a page of another title as back and forward do, at a third of the cost of loading it anew.

    What the page before wrote into the address late may come along: where that matters, `open_at` goes there.
    """
    expect(_heading(page, title)).to_have_count(0)
    page.wait_for_timeout(300)
    page.evaluate(
        "url => { history.pushState({}, '', url); dispatchEvent(new PopStateEvent('popstate')) }", url
    )
    settle(page, title)


def settle(page: Page, title: str) -> None:
    expect(_heading(page, title)).to_be_visible(timeout=PAINTED_TIMEOUT_MS)
    page.wait_for_selector(SETTLED, timeout=PAINTED_TIMEOUT_MS)
    # A browser's first visit fetches the code of each kind of element; until then a skeleton stands there.
    expect(page.get_by_test_id("stSkeleton")).to_have_count(0, timeout=PAINTED_TIMEOUT_MS)


def _heading(page: Page, title: str) -> Locator:
    return page.get_by_test_id("stHeading").get_by_role("heading", name=title, exact=True)


def permalink(page: Page) -> str:
    """The address that the page offers to send."""
    page.get_by_role("button", name="Share").click()
    shown = page.get_by_test_id("stPopoverBody").get_by_test_id("stCode").first
    address = shown.inner_text().strip()
    page.keyboard.press("Escape")
    expect(page.get_by_test_id("stPopoverBody")).to_have_count(0)
    return address
