"""The OpenAPI 3.1 document, made from the endpoints themselves and the columns of their frames."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from compilewatch import __version__
from compilewatch.dashboard.api.endpoints import ENDPOINTS, PREFIX, Endpoint
from compilewatch.dashboard.api.jobs import JobAnswer
from compilewatch.dashboard.api.representation import object_schema
from compilewatch.dashboard.api.written import AnnotationSpec, RequestAnswer
from compilewatch.dashboard.links.values import Text
from compilewatch.db.engine.session import Database
from compilewatch.db.records.hosts import JobReport
from compilewatch.db.records.people import Annotation
from compilewatch.db.records.requests import RequestSpec

_ERROR = object_schema(
    {"error": object_schema({"message": {"type": "string"}, "next_step": {"type": "string"}})}
)
_REFUSALS = {
    400: "A parameter is unknown, missing or wrong.",
    401: "There is no API token.",
    403: "The API token lacks the scope.",
    404: "There is nothing of that name.",
    409: "The two sides cannot be compared.",
    410: "It was here, and was revoked.",
    429: "Too many requests; come back after Retry-After seconds.",
    500: "A defect.",
    503: "The database cannot be read.",
}
_ALWAYS = (400, 429, 500, 503)


def document(database: Database, base_path: str = "") -> dict[str, Any]:
    """The whole API, served below `base_path` (`dashboard.server.server`). Raises DatabaseError."""
    schemas: dict[str, Any] = {"Error": _ERROR}
    paths = {}
    for endpoint in ENDPOINTS:
        schemas[endpoint.name] = _hoisted(endpoint.schema(database), schemas)
        paths[PREFIX + endpoint.path] = {"get": _operation(endpoint)}
    schemas["request"] = _hoisted(RequestAnswer.model_json_schema(mode="serialization"), schemas)
    schemas["RequestSpec"] = _hoisted(RequestSpec.model_json_schema(), schemas)
    schemas["annotation"] = _hoisted(Annotation.model_json_schema(mode="serialization"), schemas)
    schemas["AnnotationSpec"] = _hoisted(AnnotationSpec.model_json_schema(), schemas)
    schemas["job"] = _hoisted(JobAnswer.model_json_schema(mode="serialization"), schemas)
    schemas["JobReport"] = _hoisted(JobReport.model_json_schema(), schemas)
    queues = "Queue a run: what to measure, by names of the measuring host's configuration"
    paths[f"{PREFIX}/requests"]["post"] = _creation("request", queues, "RequestSpec")
    writes = "Write a note at a day or at a build, for every axis of time"
    paths[f"{PREFIX}/annotations"]["post"] = _creation("annotation", writes, "AnnotationSpec", 404)
    says = "Say how a process of a running job is"
    paths[f"{PREFIX}/jobs"]["post"] = _creation("job", says, "JobReport")
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "compilewatch",
            "version": __version__,
            "description": "Performance history of torch.compile. Run requests, annotations and reports "
            "of running jobs are written. "
            "Times are integer or fractional nanoseconds, memory bytes, moments RFC 3339 in UTC; null means "
            "not measured, never 0.",
        },
        # Without it the server is the root of the host (OpenAPI 3.1.0, 4.8.1).
        **({"servers": [{"url": base_path}]} if base_path else {}),
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _operation(endpoint: Endpoint) -> dict[str, Any]:
    return {
        "operationId": endpoint.name,
        "summary": endpoint.summary,
        "parameters": [
            *(_id(name) for name in endpoint.ids),
            *_query(endpoint.query.model_json_schema()),
        ],
        "responses": {
            "200": _success(endpoint.name),
            "304": {"description": "Nothing changed since the ETag in If-None-Match."},
            **{str(status): _refusal(status) for status in sorted({*_ALWAYS, *endpoint.refusals})},
        },
    }


def _id(name: str) -> dict[str, Any]:
    what = f"The id of a {name}."
    return {"name": name, "in": "path", "required": True, "description": what, "schema": Text().schema}


def _query(model: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for name, schema in model["properties"].items():
        several = schema["type"] == "array"
        if several or schema.get("default") is None:
            schema.pop("default", None)
        schema.pop("title", None)
        described = {"name": name, "in": "query", "required": name in model.get("required", ())}
        described["description"] = schema.pop("description")
        yield described | {"schema": schema} | ({"style": "form", "explode": True} if several else {})


def _success(name: str) -> dict[str, Any]:
    return {
        "description": "The answer.",
        "headers": {
            "ETag": {"schema": {"type": "string"}, "description": "Send it back as If-None-Match."},
            "Link": {"schema": {"type": "string"}, "description": 'The next page, as rel="next".'},
        },
        "content": {
            "application/json": {"schema": {"$ref": f"#/components/schemas/{name}"}},
            "text/csv": {"schema": {"type": "string"}},
        },
    }


def _refusal(status: int) -> dict[str, Any]:
    return {
        "description": _REFUSALS[status],
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}},
    }


def _creation(name: str, summary: str, form: str, *refusals: int) -> dict[str, Any]:
    def schema(of: str) -> dict[str, Any]:
        return {"application/json": {"schema": {"$ref": f"#/components/schemas/{of}"}}}

    return {
        "operationId": f"create_{name}",
        "summary": summary,
        "security": [{"token": []}],
        "requestBody": {"required": True, "content": schema(form)},
        "responses": {
            "201": {"description": "Stored.", "content": schema(name)},
            **{str(status): _refusal(status) for status in sorted((*_ALWAYS, 401, 403, *refusals))},
        },
    }


def _hoisted(schema: dict[str, Any], into: dict[str, Any]) -> dict[str, Any]:
    """`schema` with its own definitions moved to the document's components."""
    rewritten: dict[str, Any] = json.loads(json.dumps(schema).replace('"#/$defs/', '"#/components/schemas/'))
    for name, definition in rewritten.pop("$defs", {}).items():
        assert into.setdefault(name, definition) == definition, f"two schemas are called {name}"
    return rewritten
