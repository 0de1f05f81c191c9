"""`compilewatch dashboard`: start the web app in this process's place."""

from __future__ import annotations

import json
import os
import sys
from typing import Annotated

import typer

from db.records.reports import KEEP_DAYS_VARIABLE
from runner.cli.options import ConfigOption, DatabaseOption, settings_of
from runner.config.settings import Settings


def dashboard(
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port to listen on.")] = 8501,
    allow_public: Annotated[
        bool, typer.Option("--allow-public", help="Serve without login on an address others can reach.")
    ] = False,
    base_path: Annotated[
        str, typer.Option(metavar="PATH", help="Serve below this path, for a proxy: /compilewatch.")
    ] = "",
    db: DatabaseOption = None,
    config: ConfigOption = None,
) -> int:
    """Serve the dashboard. Example: compilewatch dashboard --port 8501"""
    settings = settings_of(config, db)
    command = [sys.executable, "-m", "dashboard", "--host", host, "--port", str(port)]
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
        "COMPILEWATCH_POLICY": settings.policy.model_dump_json(),
        "COMPILEWATCH_TARGETS": json.dumps(
            [entry.model_dump(exclude_none=True) for entry in settings.target]
        ),
        "COMPILEWATCH_LIMITS": settings.limits.model_dump_json(),
        "COMPILEWATCH_EMBED_ORIGINS": " ".join(settings.embed.origins),
        **({} if days is None else {KEEP_DAYS_VARIABLE: str(days)}),
    }
