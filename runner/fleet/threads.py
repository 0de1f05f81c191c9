"""Work beside the event loop of a worker, which never waits for it without an end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from threading import Thread
from typing import TypeVar

T = TypeVar("T")


def in_thread(work: Callable[[], T], name: str) -> asyncio.Future[T]:
    """`work` in a thread of its own, which ends with this process if not before.

    Wait with `asyncio.wait`, which leaves it alone when it is cancelled itself. Not `asyncio.to_thread`: a
    program does not end before such a thread does.
    """
    ended: Future[T] = Future()
    ended.set_running_or_notify_cancel()

    def run() -> None:
        try:
            ended.set_result(work())
        except BaseException as error:  # noqa: BLE001 - raised again where somebody asks for the result
            ended.set_exception(error)

    Thread(target=run, name=name, daemon=True).start()
    waited = asyncio.wrap_future(ended)
    # Of work that was given up nobody asks how it ended, and asyncio would complain.
    waited.add_done_callback(lambda future: future.cancelled() or future.exception())
    return waited
