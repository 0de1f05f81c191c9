"""Few pages are drawn at the same time, and one that hangs keeps nobody else from being drawn."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Event, Lock
from types import SimpleNamespace
from unittest.mock import MagicMock

import pytest

from compilewatch.dashboard.render.limit import AT_ONCE, RenderLimit
from compilewatch.dashboard.server import app
from compilewatch.db.errors import CompilewatchError

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
    counting = Lock()
    now, most, drawn = 0, 0, 0

    def draw(*_: object) -> None:
        nonlocal now, most, drawn
        with counting:
            now, drawn = now + 1, drawn + 1
            most = max(most, now)
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
