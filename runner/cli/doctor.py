"""`compilewatch doctor`: what this machine has and lacks, and how small a change it can show."""

from __future__ import annotations

import dataclasses
import sys
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from db.errors import CompilewatchError, ConfigError
from db.judge.compare.noise_floor import MIN_PROCESSES
from runner.cli.front import EXIT_INTERRUPTED
from runner.cli.options import ConfigOption, DatabaseOption, JsonOption, database_of, settings_of
from runner.cli.output.documents import print_document
from runner.cli.output.tables import console
from runner.cli.validation import Validation, print_validation, validation_document
from runner.cli.validation import validate as validation
from runner.doctor.findings import Finding, Standing
from runner.doctor.hardware import hardware_findings
from runner.doctor.software import software_findings
from runner.doctor.validation import PROCESSES
from runner.plan.interpreter import InterpreterError, InterpreterFacts, check_interpreter
from runner.plan.selection import resolve_device

MINUTES = 8
SCHEMA = "compilewatch.doctor/1"
_STYLES = {Standing.OK: "green", Standing.WARN: "yellow", Standing.FAIL: "red"}


def doctor(
    validate: Annotated[
        bool,
        typer.Option(
            "--validate", help="Also measure the noise floor: the smallest change this machine shows."
        ),
    ] = False,
    minutes: Annotated[
        int | None,
        typer.Option(min=1, max=60, help=f"Time for --validate; unset: {MINUTES}. What does not fit is cut."),
    ] = None,
    processes: Annotated[
        int | None,
        typer.Option(
            min=MIN_PROCESSES, help=f"Fresh processes of each workload for --validate; unset: {PROCESSES}."
        ),
    ] = None,
    json_: JsonOption = False,
    db: DatabaseOption = None,
    config: ConfigOption = None,
) -> int:
    """Check what this machine needs for a trustworthy measurement. Example: compilewatch doctor --validate

    Exits 1 when the machine cannot measure, or when --validate has no figure. The trials of --validate are
    stored as a run of the suite `validate`. A missed aim is no failure.
    """
    given = [
        name for name, value in (("--minutes", minutes), ("--processes", processes)) if value is not None
    ]
    if given and not validate:
        raise ConfigError(f"{given[0]} is for a validation.", "Add --validate, or leave it out.")
    settings = settings_of(config, db)
    facts = _interpreter()
    torch_sees = facts.device_count if isinstance(facts, InterpreterFacts) else None
    findings = software_findings(settings, facts) + hardware_findings(torch_sees)
    failed = any(finding.standing is Standing.FAIL for finding in findings)
    if not json_:
        _print(findings)
    outcome = None
    if validate and not failed:
        assert isinstance(facts, InterpreterFacts)
        device = resolve_device(settings.run.device, [facts])
        with database_of(settings) as database:
            outcome = validation(
                settings, database, device, minutes=minutes or MINUTES, processes=processes or PROCESSES
            )
        if outcome.measured.interrupted:
            return EXIT_INTERRUPTED
    if json_:
        print_document(_document(findings, outcome))
    elif outcome is not None:
        print_validation(outcome)
    return 1 if failed or (outcome is not None and not outcome.floors) else 0


def _interpreter() -> InterpreterFacts | CompilewatchError:
    try:
        return check_interpreter(sys.executable)
    except InterpreterError as error:
        return error


def _print(findings: list[Finding]) -> None:
    table = Table(box=None, show_header=False, pad_edge=False)
    for finding in findings:
        standing = Text(finding.standing.value, style=_STYLES[finding.standing])
        step = Text(f"\n{finding.next_step}", style="dim") if finding.next_step else Text("")
        table.add_row(standing, Text(finding.subject), Text(finding.fact) + step)
    console().print(table)


def _document(findings: list[Finding], outcome: Validation | None) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "findings": [dataclasses.asdict(finding) for finding in findings],
        "validation": None if outcome is None else validation_document(outcome),
    }
