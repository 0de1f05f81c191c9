"""Few pages are drawn at the same time, and none that hangs or waits keeps anybody else from an answer."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Event, Lock
from types import SimpleNamespace
from typing import NoReturn
from unittest.mock import MagicMock

import pytest
from starlette.applications import Starlette

from compilewatch.dashboard.api import badge, comparisons
from compilewatch.dashboard.http.turns import AT_ONCE, IN_ALL, OF_READER, RETRY_S, RenderLimit
from compilewatch.dashboard.server import app, charts
from compilewatch.db.errors import CompilewatchError, NotFoundError
from tests.dashboard.asking import Reply, reply_to, whole_application
from tests.dashboard.conftest import DATABASE

# More than a machine under load takes for pages that do nothing.
PATIENCE_S = 30


@pytest.fixture
def drawn_by(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[..., None]], None]:
    """Sets what draws a page. Streamlit's own test sessions cannot run beside each other: they share the
    runtime's place.
    """
    monkeypatch.setattr(app, "st", MagicMock(navigation=lambda *_, **__: SimpleNamespace(url_path="guide")))
    monkeypatch.setattr(app.shell, "trouble", lambda _: None)
    return lambda draw: monkeypatch.setattr(app, "_draw", draw)


def test_few_pages_are_drawn_at_once(drawn_by: Callable[[Callable[..., None]], None]) -> None:
    """All others wait without taking turns at the interpreter with the event loop, and none is forgotten."""
    counting, full = Lock(), Event()
    now, most, drawn = 0, 0, 0

    def draw(*_: object) -> None:
        nonlocal now, most, drawn
        with counting:
            now, drawn = now + 1, drawn + 1
            most = max(most, now)
            if now == AT_ONCE:
                full.set()
        assert full.wait(PATIENCE_S)
        time.sleep(0.1)
        with counting:
            now -= 1
        raise CompilewatchError("That was all.")

    drawn_by(draw)
    with ThreadPoolExecutor(3 * AT_ONCE) as sessions:
        for session in [sessions.submit(app.main) for _ in range(3 * AT_ONCE)]:
            session.result()
    assert (drawn, most) == (3 * AT_ONCE, AT_ONCE)


def test_pages_that_hang_keep_no_other_from_being_drawn(
    drawn_by: Callable[[Callable[..., None]], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app, "RENDER_LIMIT", RenderLimit(longest_s=0.2))
    answered, hanging = Event(), []

    def hang(*_: object) -> None:
        hanging.append(None)
        answered.wait()

    with ThreadPoolExecutor(AT_ONCE + 1) as sessions:
        try:
            drawn_by(hang)
            stuck = [sessions.submit(app.main) for _ in range(AT_ONCE)]
            until = time.monotonic() + PATIENCE_S
            while len(hanging) < AT_ONCE:
                assert time.monotonic() < until
                time.sleep(0.01)
            drawn_by(lambda *_: None)
            # One after the other, since what hangs goes on hanging: the second waits for nothing.
            for _ in range(2):
                sessions.submit(app.main).result(timeout=PATIENCE_S)
            assert not any(page.done() for page in stuck)
        finally:
            answered.set()


def test_who_no_longer_waits_still_waits_for_pages_that_came_later() -> None:
    """A page that hangs is not counted; those that took a turn since then are."""
    now_s = 100.0
    turns = RenderLimit(1, longest_s=10, clock=lambda: now_s)
    order: list[str] = []
    with ThreadPoolExecutor(1) as sessions, turns.take():
        now_s += 10

        def third() -> None:
            with turns.take():
                order.append("third")

        with turns.take():
            waiting = sessions.submit(third)
            time.sleep(0.05)
            order.append("second")
        waiting.result(timeout=PATIENCE_S)
    assert order == ["second", "third"]


ASKED = 60
"""More than the 40 threads that answer."""


@pytest.mark.parametrize("path", ["/chart/trends/trend.svg", "/api/v1/changes", "/badge/tally.svg"])
def test_whoever_waits_for_a_drawing_keeps_no_other_from_an_answer(
    filled_url: str, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    """Sixty at once of one reader, none of which is made before others were answered."""
    monkeypatch.setenv(DATABASE, filled_url)
    released, begun, lock = Event(), 0, Lock()

    def hang(*_: object, **__: object) -> NoReturn:
        nonlocal begun
        with lock:
            begun += 1
        released.wait()
        raise NotFoundError("That was all.")

    for module, name in (
        (charts, "asked_for"),
        (comparisons, "machine_steps"),
        (badge, "comparison_of"),
    ):
        monkeypatch.setattr(module, name, hang)

    async def at_once(app: Starlette) -> tuple[list[Reply], Reply, int, int]:
        asked = [asyncio.ensure_future(reply_to(app, path, client="192.0.2.7")) for _ in range(ASKED)]
        try:
            refused, _ = await asyncio.wait(asked, timeout=PATIENCE_S, return_when=asyncio.FIRST_COMPLETED)
            while sum(each.done() for each in asked) < ASKED - OF_READER:
                await asyncio.sleep(0.01)
            health = await asyncio.wait_for(reply_to(app, "/healthz"), PATIENCE_S)
            others = [
                asyncio.ensure_future(reply_to(app, path, client=f"192.0.2.{n}")) for n in range(20, 40)
            ]
            while sum(each.done() for each in others) < len(others) - (IN_ALL - OF_READER):
                await asyncio.sleep(0.01)
            assert refused
            drawn = begun
        finally:
            released.set()
        return (
            await asyncio.gather(*asked),
            health,
            drawn,
            sum(each.status == 429 for each in await asyncio.gather(*others)),
        )

    with whole_application() as served:
        replies, health, drawn, others = asyncio.run(asyncio.wait_for(at_once(served), 2 * PATIENCE_S))
    assert health.status == 200
    assert drawn == AT_ONCE
    refused = [each for each in replies if each.status == 429]
    assert len(refused) == ASKED - OF_READER
    assert {each.headers["retry-after"] for each in refused} == {str(RETRY_S)}
    assert {each.status for each in replies if each not in refused} == {404}
    assert others == 20 - (IN_ALL - OF_READER)
