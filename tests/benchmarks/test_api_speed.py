"""Processor time of one request to the API: made anew, and answered as a moment before.

The reference is a route of Starlette's that answers two bytes, asked in the same run.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message

from dashboard.api.routes import routes
from dashboard.http.rate_limit import RateLimit
from dashboard.read.database import close_databases
from db.engine.session import open_database
from db.store.trials import save_trials
from tests.benchmarks.test_load import PATHS
from tests.builders import make_history
from tests.dashboard.conftest import DATABASE

pytestmark = pytest.mark.benchmark
FEW, MANY = 20, 2_000


@pytest.fixture
def _database(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    url = f"sqlite:///{tmp_path}/api.db"
    with open_database(url, migrate=True) as database:
        save_trials(database, make_history(workloads=("bert-base", "resnet-50", "mlp", "elementwise")))
    monkeypatch.setenv(DATABASE, url)
    monkeypatch.setattr(RateLimit, "take", lambda self, client: 0.0)
    yield
    close_databases()


async def _two_bytes(_: Request) -> Response:
    return PlainTextResponse("ok")


@pytest.mark.usefixtures("_database")
def test_processor_time_of_a_request(monkeypatch: pytest.MonkeyPatch) -> None:
    reference = _ms(Starlette(routes=[Route("/", _two_bytes)]), "/", MANY)
    print(f"\nreference, two bytes from Starlette: {reference:.3f} ms of processor time")
    print("| route | made anew, ms | a recent answer, ms | recent / reference |")
    print("|---|---|---|---|")
    for path in PATHS:
        with monkeypatch.context() as patch:
            patch.setattr("dashboard.api.routes.RECENT_ANSWERS", 0)
            anew = _ms(Starlette(routes=routes()), path, FEW)
        again = _ms(Starlette(routes=routes()), path, FEW * 10)
        print(f"| `{path}` | {anew:.2f} | {again:.3f} | {again / reference:.1f} |")


def _ms(app: ASGIApp, path: str, times: int) -> float:
    """Mean processor time of a request, after one that is not counted."""
    plain, _, query = path.partition("?")
    scope = {"type": "http", "method": "GET", "path": plain, "query_string": query.encode(), "root_path": ""}

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Message) -> None:
        assert message.get("status", 200) == 200, (path, message)

    async def ask() -> None:
        headers = [(b"host", b"x"), (b"accept", b"*/*")]
        await app({**scope, "headers": headers, "client": ("192.0.2.1", 5)}, receive, send)

    async def all_of_them() -> float:
        await ask()
        began_s = time.process_time()
        for _ in range(times):
            await ask()
        return (time.process_time() - began_s) / times * 1000

    return asyncio.run(all_of_them())
