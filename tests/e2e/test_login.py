"""Signing in and out in a real browser: the deep link, the socket, the name in the sidebar, the end."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from db.records.access import Roles, SignIn
from tests.dashboard.provider import CLIENT_ID, CLIENT_SECRET, FakeProvider, fake_provider
from tests.dashboard.serving import Served, free_port, served
from tests.e2e.browser import SETTLED

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def provider() -> Iterator[FakeProvider]:
    with fake_provider() as started:
        yield started


@pytest.fixture(scope="module")
def server(
    filled_url: str, provider: FakeProvider, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Served]:
    port = free_port()
    settings = SignIn(
        base_url=f"http://127.0.0.1:{port}",
        issuer=provider.issuer,
        client_id=CLIENT_ID,
        client_secret=CLIENT_SECRET,
        roles=Roles(editors=("performance",)),
    )
    log = tmp_path_factory.mktemp("login") / "log"
    with served(filled_url, log, port=port, COMPILEWATCH_SIGN_IN=settings.revealed()) as running:
        yield running


def test_a_deep_link_leads_through_the_login_to_its_page_and_out_again(
    browser: Browser, server: Served
) -> None:
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    try:
        page = context.new_page()
        page.goto(f"{server.origin}/trends?workload=mlp")
        page.wait_for_selector(SETTLED)
        assert page.url.startswith(f"{server.origin}/trends?workload=mlp")
        expect(page.get_by_test_id("stSidebar")).to_contain_text(re.compile(r"ada@.?example\.com · editor"))
        leave = page.get_by_role("link", name="Sign out")
        assert leave.get_attribute("href") == "logout"
        page.goto(f"{server.origin}/logout")
        page.get_by_role("button", name="Sign out").click()
        expect(page.get_by_role("heading", name="Signed out")).to_be_visible()
        # A program with the cookies that this browser has left is nobody.
        assert context.request.get(f"{server.origin}/metrics").status == 401
    finally:
        context.close()
