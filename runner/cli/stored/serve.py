"""`dashboard` and `demo` start the web app in this process's place; `token` says who may read its API."""

from __future__ import annotations

import importlib.metadata
import os
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated

import typer
from pydantic import ValidationError
from ulid import ULID

from compilewatch.db.engine.session import Database, open_database
from compilewatch.db.errors import CompilewatchError, ConfigError, printable
from compilewatch.db.judge.compare.recorded_regressions import TriageEvent
from compilewatch.db.people.annotations import ANNOTATIONS
from compilewatch.db.people.recording import record_comparison, triage
from compilewatch.db.people.regressions import standing_regressions
from compilewatch.db.records.people import KEEP_DAYS_VARIABLE, Annotation, TriageState
from compilewatch.db.records.tokens import Scope, Token, new_secret, new_token_id, secret_hash
from compilewatch.db.service.tokens import TOKENS, revoke_token
from compilewatch.db.units import moment
from compilewatch.db.verdicts.gateway import compare
from compilewatch.db.verdicts.sides import resolve_side
from compilewatch.runner.cli.options import (
    ConfigOption,
    DatabaseOption,
    JsonOption,
    author,
    database_of,
    settings_of,
)
from compilewatch.runner.config.settings import Settings
from compilewatch.runner.output.documents import print_document

_RECORDED = Path(__file__).parents[4] / "docs" / "measured"


HostOption = Annotated[str, typer.Option(help="Address to listen on.")]
PortOption = Annotated[int, typer.Option(min=1, max=65535, help="Port to listen on.")]
PublicOption = Annotated[
    bool, typer.Option("--allow-public", help="Serve without login on an address others can reach.")
]


def dashboard(
    host: HostOption = "127.0.0.1",
    port: PortOption = 8501,
    allow_public: PublicOption = False,
    base_path: Annotated[
        str, typer.Option(metavar="PATH", help="Serve below this path, for a proxy: /compilewatch.")
    ] = "",
    db: DatabaseOption = None,
    config: ConfigOption = None,
) -> int:
    """Serve the dashboard. Example: compilewatch dashboard --port 8501"""
    settings = settings_of(config, db)
    command = [sys.executable, "-P", "-m", "compilewatch.dashboard", "--host", host, "--port", str(port)]
    if allow_public:
        command.append("--allow-public")
    if base_path:
        command += ["--base-path", base_path]
    sys.stdout.flush()
    # The URL may hold a password, so it goes through the environment, not the process list.
    # So does the secret of the login, which only the process that serves gets.
    sign_in = "" if settings.auth is None else settings.auth.revealed()
    environment = dashboard_environment(settings) | {"COMPILEWATCH_SIGN_IN": sign_in}
    os.execve(sys.executable, command, environment)  # noqa: S606


def dashboard_environment(settings: Settings) -> dict[str, str]:
    """What a process of the dashboard's package is told of the configuration."""
    days = settings.report.keep_days
    return {
        **os.environ,
        "COMPILEWATCH_DATABASE_URL": settings.database_url,
        "COMPILEWATCH_IN_FORCE": settings.model_dump_json(include={"policy", "target", "limits"}),
        "COMPILEWATCH_EMBED_ORIGINS": " ".join(settings.embed.origins),
        "COMPILEWATCH_PUBLIC_URL": settings.notify.base_url or "",
        **({} if days is None else {KEEP_DAYS_VARIABLE: str(days)}),
    }


def demo(
    host: HostOption = "127.0.0.1",
    port: PortOption = 8501,
    allow_public: PublicOption = False,
    config: ConfigOption = None,
) -> int:
    """Serve recorded histories: six torch releases on a CPU, two on an H100. Example: compilewatch demo

    Nothing is measured. They have a database of their own, demo.db in the data directory.
    """
    from compilewatch.runner.cli.stored.interchange import import_

    settings = settings_of(config, None)
    file = settings.data_dir.absolute() / "demo.db"
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CompilewatchError(
            f"{file.parent} cannot be made: {error.strerror}.", "Type it in a folder you may write to."
        ) from error
    url = f"sqlite:///{file}"
    code = import_(_recorded(), db=url, config=config)
    if not code:
        with open_database(url) as database:
            _file_a_regression(database)
    return code or dashboard(host=host, port=port, allow_public=allow_public, db=url, config=config)


_DEMO_STEP = ("torch=2.6.0", "torch=2.8.0")
_DEMO_OWNER = "Ada (demo)"
_DEMO_NOTES = {
    TriageState.CONFIRMED: "compilewatch bisect on another CPU: +198 % [+184, +212] between torch 2.6.0 "
    "and 2.7.0; 3 builds of 4 releases measured.",
    TriageState.ACKNOWLEDGED: "Inductor's code calls the exact tanh three times, where 2.6.0 writes it "
    "through exp. 2.15.0 calls it once.",
}
"""What is measured in docs/measured/causes.md and upgrade-history.md."""


def _file_a_regression(database: Database) -> None:
    """What got slower from 2.6 to 2.8, filed as a gate would have filed it then, with its bisection, an owner
    and the cause, which is a note at that build too.
    """
    base, head = (resolve_side(side, database) for side in _DEMO_STEP)
    now = datetime.now(UTC)
    comparison = compare(database, base, head)
    if not record_comparison(database, comparison, at=now).new:
        return
    for each in standing_regressions(database):
        for state, note in _DEMO_NOTES.items():
            said = TriageEvent(state=state, author=_DEMO_OWNER, at=now, note=note)
            triage(database, each.regression.regression_id, said)
    annotation = Annotation(
        annotation_id=str(ULID()),
        text="elementwise: the exact tanh, called three times",
        author=_DEMO_OWNER,
        written_at=now,
        build_id=comparison.head.build_ids[-1],
        machine_id=comparison.machine_id,
    )
    ANNOTATIONS.add(database, annotation)


def _recorded() -> list[Path]:
    """The histories of a checkout, else those that were installed with the package."""
    histories = sorted(_RECORDED.rglob("*.jsonl"))
    if not histories:
        shipped = importlib.metadata.files("compilewatch") or []
        histories = sorted(Path(str(file.locate())).resolve() for file in shipped if file.suffix == ".jsonl")
    if not histories:
        raise CompilewatchError(
            "The recorded histories are not installed.", "Install the wheel of a release, or use a checkout."
        )
    return histories


app = typer.Typer(
    help="API tokens for programs that cannot sign in.", no_args_is_help=True, rich_markup_mode=None
)
ByOption = Annotated[str | None, typer.Option("--by", help="Your name; default: the user logged in.")]


@app.command("create")
def create(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Its purpose, such as grafana.")],
    scope: Annotated[
        list[Scope] | None, typer.Option("--scope", help="Its scope, repeatable; default: api.")
    ] = None,
    days: Annotated[
        int | None, typer.Option("--days", min=1, max=3650, help="Days until it ends; default: never.")
    ] = None,
    by: ByOption = None,
    db: DatabaseOption = None,
    config: ConfigOption = None,
) -> int:
    """Create a token and print its secret once. Example: compilewatch token create grafana"""
    now, secret = datetime.now(UTC), new_secret()
    try:
        token = Token(
            token_id=new_token_id(),
            name=name,
            secret_hash=secret_hash(secret),
            scopes=tuple(dict.fromkeys(scope or [Scope.API])),
            created_at=now,
            created_by=author(by),
            expires_at=None if days is None else now + timedelta(days=days),
        )
    except ValidationError as error:
        raise ConfigError(
            f"{name!r} cannot name a token.", "Use letters, digits and . _ - + @ :, at most 100."
        ) from error
    with database_of(settings_of(config, db)) as database:
        TOKENS.add(database, token)
    typer.echo(secret)
    typer.echo(
        f"Token {token.token_id} ({name}) opens {', '.join(token.scopes)}. It is not shown again; send it as "
        "the header Authorization: Bearer.",
        err=True,
    )
    return 0


@app.command("list")
def list_(db: DatabaseOption = None, config: ConfigOption = None, as_json: JsonOption = False) -> int:
    """Every token with its end, without secrets. Example: compilewatch token list"""
    with open_database(settings_of(config, db).database_url, read_only=True) as database:
        stored = TOKENS.all(database)
    if as_json:
        shown = [token.model_dump(mode="json", exclude={"secret_hash"}) for token in stored]
        print_document({"tokens": shown})
        return 0
    if not stored:
        typer.echo("There is no token. Make one with `compilewatch token create NAME`.")
    now = datetime.now(UTC)
    for token in stored:
        line = (
            f"{token.token_id}  {token.name}  opens {', '.join(token.scopes)}  {_state(token, now)}  "
            f"made {moment(token.created_at)} by {token.created_by}"
        )
        typer.echo(printable(line))
    return 0


@app.command("revoke")
def revoke(
    token_id: Annotated[str, typer.Argument(metavar="ID", help="As `compilewatch token list` shows it.")],
    by: ByOption = None,
    db: DatabaseOption = None,
    config: ConfigOption = None,
) -> int:
    """Revoke a token at once. Example: compilewatch token revoke 1f2e3d4c"""
    with database_of(settings_of(config, db), migrate=False, changes=True) as database:
        token = revoke_token(database, token_id, at=datetime.now(UTC), by=author(by))
    typer.echo(f"Token {token.token_id} ({token.name}) opens nothing since {moment(token.revoked_at)}.")
    return 0


def _state(token: Token, now: datetime) -> str:
    if token.revoked_at is not None:
        return f"revoked {moment(token.revoked_at)} by {token.revoked_by}"
    if token.expires_at is None:
        return "until revoked"
    return f"{'ended' if token.has_ended(now) else 'until'} {moment(token.expires_at)}"
