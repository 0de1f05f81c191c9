"""Run requests over HTTP: who may queue one, what it may hold, and what its row says."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from starlette.applications import Starlette

from compilewatch.dashboard.api.endpoints import PREFIX
from compilewatch.dashboard.api.routes import routes
from compilewatch.dashboard.api.written import MOST_BYTES
from compilewatch.db.engine.session import open_database
from compilewatch.db.records.access import Scope, Token, new_secret, secret_hash
from compilewatch.db.records.requests import RequestKind
from compilewatch.db.service.annotations import stored_annotations
from compilewatch.db.service.requests import requests
from compilewatch.db.service.tokens import TOKENS
from tests.builders import make_history
from tests.dashboard.asking import Reply, ask
from tests.dashboard.conftest import Store

SECRETS = {scope: new_secret() for scope in Scope}
WANTED = {"workloads": ["mlp"], "strategies": ["eager"], "builds": ["torch-2.12.1"], "trials": 7}
Post = Callable[..., Reply]


@pytest.fixture
def url(store: Store) -> str:
    url = store(make_history(workloads=("mlp",), builds=("2.13.0",)))
    with open_database(url) as database:
        for scope, secret in SECRETS.items():
            token = Token(
                token_id=scope.value,
                name="ci",
                secret_hash=secret_hash(secret),
                scopes=(scope,),
                created_at=datetime.now(UTC),
                created_by="ann",
            )
            TOKENS.add(database, token)
    return url


@pytest.fixture
def post(url: str) -> Post:
    app = Starlette(routes=routes())

    def posted(body: Any, secret: str | None = SECRETS[Scope.REQUESTS], to: str = "requests") -> Reply:
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        sent = f"Bearer {secret}" if secret else ""
        return ask(app, f"{PREFIX}/{to}", method="POST", body=content, authorization=sent)

    return posted


def test_a_token_of_the_scope_queues_what_is_named(post: Post, url: str) -> None:
    reply = post(WANTED | {"machine": "gpu-9"})
    assert reply.status == 201
    with open_database(url, read_only=True) as database:
        (request,) = requests(database)
    assert reply.json["request"] == request.model_dump(mode="json")
    assert (request.kind, request.asked_by) == (RequestKind.MANUAL, "token ci")
    assert request.spec.model_dump(mode="json", include=set(WANTED)) == WANTED
    assert "No service runs for gpu-9" in reply.json["unserved"]
    (row,) = ask(Starlette(routes=routes()), f"{PREFIX}/requests", {"state": "queued"}).json["rows"]
    assert (row["request_id"], row["unserved"]) == (request.request_id, reply.json["unserved"])


@pytest.mark.parametrize(
    ("secret", "status"),
    [
        (None, 401),
        (new_secret(), 401),
        (SECRETS[Scope.API], 403),
        (SECRETS[Scope.REPORTS], 403),
        (SECRETS[Scope.METRICS], 403),
    ],
    # Secrets are new in each process, and tests have one name in all.
    ids=["none", "unknown", "api", "reports", "metrics"],
)
def test_nothing_else_queues_anything(post: Post, url: str, secret: str | None, status: int) -> None:
    reply = post(WANTED, secret)
    assert (reply.status, set(reply.json["error"])) == (status, {"message", "next_step"})
    with open_database(url, read_only=True) as database:
        assert requests(database) == []


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"", "The body"),
        (b"[]", "The body"),
        ({"command": "rm"}, "command is none of the known keys."),
        ({"trials": 0}, "trials must be at least 1, not 0."),
        ({"trials": 99_999_999}, "at most 20,000"),
        ({"workloads": ["x" * 300]}, "workloads"),
        ({"label": "a\u0000b"}, "label"),
        (b" " * (MOST_BYTES + 1), "longer than"),
        (b"[" * 5_000, "The body"),
    ],
)
def test_what_cannot_be_queued_is_told(post: Post, url: str, body: Any, said: str) -> None:
    reply = post(body)
    assert reply.status == 400
    assert said in reply.json["error"]["message"]
    with open_database(url, read_only=True) as database:
        assert requests(database) == []


def test_a_token_of_its_scope_writes_a_note(post: Post, url: str) -> None:
    note = {"text": "Driver 580", "build": "torch=2.13.0", "machine": "gpu-box-3"}
    assert post(note, to="annotations").status == 403
    secret = SECRETS[Scope.ANNOTATIONS]
    assert post(note | {"url": "javascript:alert(1)"}, secret, "annotations").status == 400
    assert post(note | {"build": "torch=9"}, secret, "annotations").status == 404
    assert post(note | {"workload": "mpl"}, secret, "annotations").status == 404
    assert post(note, secret).status == 403
    reply = post(note | {"workload": "mlp"}, secret, "annotations")
    assert reply.status == 201
    with open_database(url, read_only=True) as database:
        (stored,) = stored_annotations(database)
    assert reply.json == stored.model_dump(mode="json")
    assert (stored.text, stored.author, stored.happened_at) == ("Driver 580", "token ci", None)
    assert stored.workload == "mlp"
