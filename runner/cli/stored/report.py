"""`compilewatch report`: freeze what a link or a comparison shows, and look after what was frozen."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated

import typer

from compilewatch.db.cells import rows_of
from compilewatch.db.engine.session import Database
from compilewatch.db.errors import ConfigError, NotFoundError
from compilewatch.db.records.people import Report
from compilewatch.db.service.reports import REPORTS, expire_reports, reports_frame, revoke_report
from compilewatch.db.units import moment, plural
from compilewatch.runner.cli.options import (
    ConfigOption,
    DatabaseOption,
    JsonOption,
    author,
    database_of,
    settings_of,
)
from compilewatch.runner.cli.stored.serve import ByOption, dashboard_environment
from compilewatch.runner.output.documents import print_document
from compilewatch.runner.output.tables import console, facts_table, plain_table

SCHEMA = "compilewatch.reports/1"
app = typer.Typer(
    help="Freeze a page or comparison as a report.", no_args_is_help=True, rich_markup_mode=None
)
IdArgument = Annotated[str, typer.Argument(metavar="ID", help="A report's id.")]


@app.command("create")
def create(
    link: Annotated[
        str | None, typer.Option("--link", metavar="URL", help="A link that a page of the dashboard offers.")
    ] = None,
    compare: Annotated[
        tuple[str, str] | None,
        typer.Option(
            "--compare", metavar="BASE HEAD", help="Two sides, named as for `compilewatch compare`."
        ),
    ] = None,
    title: Annotated[str | None, typer.Option(help="Its title; default: its content.")] = None,
    by: ByOption = None,
    db: DatabaseOption = None,
    config: ConfigOption = None,
) -> int:
    """Freeze the page of a link, or a comparison, and print the report's id.

    Example: compilewatch report create --compare torch=2.12.1 torch=2.13.0 --title "Upgrade to 2.13"

    The dashboard shows it at /report/ID.
    """
    if (link is None) == (compare is None):
        raise ConfigError("A report is made of one thing.", "Give either --link or --compare.")
    what = ["--compare", *compare] if compare is not None else [f"--link={link}"]
    named = [f"--title={title}"] if title is not None else []
    return _dashboard(["create", *what, *named, f"--by={author(by)}"], db, config)


@app.command("list")
def list_(json_: JsonOption = False, db: DatabaseOption = None, config: ConfigOption = None) -> int:
    """All reports, newest first, revoked ones too. Example: compilewatch report list"""
    with database_of(settings_of(config, db), migrate=False) as database:
        rows = rows_of(reports_frame(database))
    if json_:
        print_document({"schema": SCHEMA, "rows": rows})
        return 0
    if not rows:
        typer.echo("No report yet. Freeze a link with `compilewatch report create --link URL`.")
        return 0
    cells = []
    for row in rows:
        revoked = "revoked: " if row["revoked_at"] else ""
        frozen = moment(datetime.fromisoformat(row["created_at"]))
        cells.append((row["report_id"], frozen, row["created_by"], revoked + row["title"]))
    headings = ("report", "frozen", "by", "title")
    console().print(plain_table(headings, cells))
    return 0


@app.command("show")
def show(
    report_id: IdArgument, json_: JsonOption = False, db: DatabaseOption = None, config: ConfigOption = None
) -> int:
    """The sentences of a report; with --json all of its content. Example: compilewatch report show ID"""
    with database_of(settings_of(config, db), migrate=False) as database:
        report = _report_of(database, report_id)
    if json_:
        print_document(report.model_dump(mode="json"))
        return 0
    facts = [
        ("title", report.title),
        ("frozen", f"{moment(report.created_at)} by {report.created_by}"),
        ("data version", str(report.data_version)),
        ("page", f"/report/{report.report_id}"),
    ]
    if report.revoked_at is not None:
        facts.append(("revoked", f"{moment(report.revoked_at)} by {report.revoked_by}"))
    console().print(facts_table(facts))
    return 0


@app.command("export")
def export(
    report_id: IdArgument,
    output: Annotated[Path, typer.Option(metavar="FILE.html", help="The file to write.")],
    db: DatabaseOption = None,
    config: ConfigOption = None,
) -> int:
    """Write a report as one HTML file that opens offline and prints well.

    Example: compilewatch report export ID --output upgrade.html
    """
    return _dashboard(["export", f"--output={output}", "--", report_id], db, config)


@app.command("revoke")
def revoke(
    report_id: IdArgument,
    by: ByOption = None,
    db: DatabaseOption = None,
    config: ConfigOption = None,
) -> int:
    """Revoke a report for good and delete its content. Example: compilewatch report revoke ID"""
    with database_of(settings_of(config, db), migrate=False) as database:
        _report_of(database, report_id)
        report = revoke_report(database, report_id, at=datetime.now(UTC), by=author(by))
    typer.echo(f"Revoked on {moment(report.revoked_at)} by {report.revoked_by}: {report.title}")
    return 0


@app.command("expire")
def expire(
    older_than_days: Annotated[
        int | None, typer.Option(min=1, help="Age in days; default: keep_days of [report].")
    ] = None,
    db: DatabaseOption = None,
    config: ConfigOption = None,
) -> int:
    """Delete the content of old reports, as the service does every hour.

    Example: compilewatch report expire --older-than-days 365
    """
    settings = settings_of(config, db)
    days = older_than_days or settings.report.keep_days
    if days is None:
        raise ConfigError("Reports have no limit.", "Give --older-than-days.")
    now = datetime.now(UTC)
    with database_of(settings, migrate=False, changes=True) as database:
        expired = expire_reports(database, now - timedelta(days=days), at=now)
    typer.echo(f"Took away {plural(expired, 'report')} older than {plural(days, 'day')}.")
    return 0


def _report_of(database: Database, report_id: str) -> Report:
    report = REPORTS.get(database, report_id)
    if report is None:
        raise NotFoundError(f"There is no report {report_id}.", "See `compilewatch report list`.")
    return report


def _dashboard(arguments: list[str], db: str | None, config: Path | None) -> int:
    """The dashboard's own program: drawing belongs to it, and commands start without its libraries."""
    environment = dashboard_environment(settings_of(config, db))
    sys.stdout.flush()
    command = [sys.executable, "-P", "-m", "compilewatch.dashboard.reports", *arguments]
    return subprocess.run(command, env=environment, check=False).returncode
