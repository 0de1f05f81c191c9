"""`python -m compilewatch.dashboard.reports`: make or export reports of COMPILEWATCH_DATABASE_URL."""

from __future__ import annotations

import argparse
import sys
from datetime import UTC, datetime
from pathlib import Path

from compilewatch.dashboard.document.content import Content, ReportError, content_of
from compilewatch.dashboard.document.page import render
from compilewatch.dashboard.read.database import database_url
from compilewatch.dashboard.reports.freeze import freeze_comparison, freeze_link, store_report
from compilewatch.db.engine.session import open_database
from compilewatch.db.errors import CompilewatchError, one_line
from compilewatch.db.part_files import part_of
from compilewatch.db.service.reports import REPORTS


def main() -> int:
    parser = argparse.ArgumentParser(prog="compilewatch report", description="Make and export reports.")
    commands = parser.add_subparsers(dest="command", required=True)
    create = commands.add_parser("create")
    what = create.add_mutually_exclusive_group(required=True)
    what.add_argument("--link")
    what.add_argument("--compare", nargs=2, metavar=("BASE", "HEAD"))
    create.add_argument("--title")
    create.add_argument("--by", required=True)
    export = commands.add_parser("export")
    export.add_argument("report_id")
    export.add_argument("--output", type=Path, required=True)
    arguments = parser.parse_args()
    try:
        if arguments.command == "create":
            sys.stdout.write(f"{_create(arguments)}\n")
        else:
            _export(arguments.report_id, arguments.output)
    except CompilewatchError as error:
        sys.stderr.write(f"compilewatch: {error.message}\n  {error.next_step}\n")
        return error.exit_code
    return 0


def _create(arguments: argparse.Namespace) -> str:
    """The id of a new report."""
    at = datetime.now(UTC)
    signed = {"title": arguments.title, "by": one_line(arguments.by), "at": at}
    content: Content
    if arguments.link is not None:
        content = freeze_link(arguments.link, **signed)
    else:
        content = freeze_comparison(*arguments.compare, **signed)
    return store_report(database_url(), content)


def _export(report_id: str, output: Path) -> None:
    """Write the page of a report to `output`, whole or not at all."""
    with open_database(database_url(), read_only=True) as database:
        report = REPORTS.get(database, report_id)
    if report is None:
        raise ReportError(f"There is no report {report_id}.", "See `compilewatch report list`.")
    if report.content is None:
        raise ReportError(f"The report {report_id} was revoked and is gone.", "Freeze the view again.")
    page = render(content_of(report.content))
    try:
        with part_of(output) as part:
            part.write_text(page, encoding="utf-8")
            part.replace(output)
    except OSError as error:
        raise ReportError(f"Cannot write {output}: {error.strerror}.", "Name another file.") from error


if __name__ == "__main__":
    sys.exit(main())
