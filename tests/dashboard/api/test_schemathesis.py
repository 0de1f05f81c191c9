"""Schemathesis against the API in this process: requests made from the document, answers held against it.

Many, or none: `test_document` asks each route once, and anything else.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from starlette.applications import Starlette

from compilewatch.dashboard.api.endpoints import ENDPOINTS, PREFIX
from compilewatch.dashboard.api.routes import routes
from compilewatch.dashboard.http.rate_limit import RateLimit
from tests.dashboard.conftest import DATABASE

if TYPE_CHECKING:
    from schemathesis import Case
    from schemathesis.schemas import BaseSchema

_UNCHECKED = [HealthCheck.filter_too_much, HealthCheck.too_slow, HealthCheck.function_scoped_fixture]


@pytest.fixture(scope="module")
def described(recorded_url: str) -> Iterator[BaseSchema]:
    """The API as its own document describes it, without a limit to how often one may ask."""
    import schemathesis

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(DATABASE, recorded_url)
        patch.setattr(RateLimit, "take", lambda self, client: 0.0)
        app = Starlette(routes=routes())
        yield schemathesis.openapi.from_asgi(f"{PREFIX}/openapi.json", app)


@pytest.mark.slow
@pytest.mark.parametrize("path", [PREFIX + endpoint.path for endpoint in ENDPOINTS])
def test_many_requests_to_every_route(described: BaseSchema, path: str) -> None:
    """Schemathesis's own pytest plugin is off: it follows pytest's internals, and a release behind."""
    import schemathesis

    operation = described[path]["GET"]
    modes = [schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE]

    for mode in modes:

        @settings(max_examples=300, suppress_health_check=_UNCHECKED)
        @given(case=operation.as_strategy(generation_mode=mode))
        def check(case: Case) -> None:
            case.call_and_validate()

        check()
