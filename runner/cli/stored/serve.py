"""`dashboard` starts the web app in this process's place; `token` says who may read its API."""

from __future__ import annotations

import os
import sys
from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer
from pydantic import ValidationError

from compilewatch.db.engine.session import open_database, sqlite_file
from compilewatch.db.errors import ConfigError, printable
from compilewatch.db.records.access import Scope, Token, new_secret, new_token_id, secret_hash
from compilewatch.db.records.people import KEEP_DAYS_VARIABLE
from compilewatch.db.service.tokens import TOKENS, revoke_token
from compilewatch.db.units import moment
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
    """Serve the dashboard. Example: compilewatch dashboard --port 8501

    Before the first run it makes an empty database and shows how to begin. One that is named, by --db, the
    configuration or the environment, has to exist: a misspelt one is no empty one.
    """
    settings = settings_of(config, db)
    path = sqlite_file(settings.database_url)
    is_named = "database_url" in settings.model_fields_set
    if not is_named and path is not None and not path.exists():
        open_database(settings.database_url, migrate=True).close()
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
