"""The OpenAPI document: true of what the routes answer, to what it allows and to what it does not."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from starlette.applications import Starlette

from compilewatch.dashboard.api.endpoints import ENDPOINTS, PREFIX, Endpoint
from compilewatch.dashboard.api.routes import routes
from compilewatch.dashboard.http.rate_limit import RateLimit
from tests.dashboard.asking import Reply, ask
from tests.dashboard.conftest import DATABASE, REPORT_ID
from tests.few_examples import FEW


@pytest.fixture(scope="module")
def app(recorded_url: str) -> Any:
    """The routes over a database in which everything occurs, without a limit to how often one may ask."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(DATABASE, recorded_url)
        patch.setattr(RateLimit, "take", lambda self, client: 0.0)
        yield Starlette(routes=routes())


@pytest.fixture(scope="module")
def document(app: Starlette) -> Any:
    return ask(app, f"{PREFIX}/openapi.json").json


def validator(document: Any, name: str) -> Draft202012Validator:
    """Checks the JSON of the response component `name`."""
    whole = {"$ref": f"#/components/schemas/{name}", "components": document["components"]}
    return Draft202012Validator(whole, format_checker=Draft202012Validator.FORMAT_CHECKER)


def check(document: Any, endpoint: Endpoint, reply: Reply) -> None:
    described = document["paths"][PREFIX + endpoint.path]["get"]["responses"]
    assert str(reply.status) in described
    kind = reply.headers["content-type"].partition(";")[0]
    assert kind in described[str(reply.status)]["content"]
    if kind == "application/json":
        name = endpoint.name if reply.status == 200 else "Error"
        validator(document, name).validate(reply.json)


def test_the_document_is_openapi_with_sound_schemas(document: Any) -> None:
    assert document["openapi"] == "3.1.0"
    assert "servers" not in document, "at the root of the host, which is what none means"
    assert set(document["paths"]) == {PREFIX + endpoint.path for endpoint in ENDPOINTS}
    for schema in document["components"]["schemas"].values():
        Draft202012Validator.check_schema(schema)
    references = set(re.findall(r'"\$ref": ?"([^"]+)"', str(document).replace("'", '"')))
    known = {f"#/components/schemas/{name}" for name in document["components"]["schemas"]}
    assert references <= known


def test_real_answers_are_as_described(app: Starlette, document: Any) -> None:
    trial = ask(app, f"{PREFIX}/trials?limit=1").json["rows"][0]
    found = ask(app, f"{PREFIX}/regressions?state=acknowledged").json["rows"][0]
    ids = {"trial": trial["trial_id"], "series": trial["series_id"]}
    ids |= {"regression": found["regression_id"], "report": REPORT_ID}
    sides = {"base": "torch=2.12.0", "head": "torch=2.13.0"}
    for endpoint in ENDPOINTS:
        path = endpoint.path.format(**ids)
        reply = ask(app, PREFIX + path, sides if endpoint.path == "/compare" else {})
        assert reply.status == 200, path
        check(document, endpoint, reply)
        # Nobody requested a run or wrote a note in the recorded history; tests of their own have some.
        assert endpoint.path in ("/requests", "/annotations", "/jobs") or reply.json.get("rows", True)


@settings(FEW, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    endpoint=st.sampled_from(ENDPOINTS),
    query=st.dictionaries(
        st.sampled_from(["limit", "since", "task", "format", "workload", "machine", "base"]) | st.text(),
        st.text(st.characters(exclude_categories=("Cs",))),
    ),
)
def test_anything_else_is_refused_in_one_shape(
    app: Starlette, document: Any, endpoint: Endpoint, query: dict[str, str]
) -> None:
    path = re.sub(r"{\w+}", "none-such", endpoint.path)
    reply = ask(app, PREFIX + path, {key: value.encode() for key, value in query.items()})
    assert reply.status < 500
    check(document, endpoint, reply)
