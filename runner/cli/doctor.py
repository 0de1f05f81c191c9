"""`compilewatch doctor`: what this machine has and lacks, and how small a change it can show."""

from __future__ import annotations

import dataclasses
import statistics
import sys
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from db.errors import CompilewatchError
from db.queries.filters import Filters
from db.queries.trials import trial_records
from db.records import Status
from db.units import percent, plural
from db.verdicts.noise_floor import MIN_TRIALS, NOISE_SUITE, NOISE_WORKLOAD
from runner.cli.documents import print_document
from runner.cli.front import EXIT_INTERRUPTED
from runner.cli.measuring import measure
from runner.cli.options import ConfigOption, DatabaseOption, JsonOption, database_of, settings_of
from runner.cli.result_table import console
from runner.config import Settings
from runner.device_choice import resolve_device
from runner.doctor.findings import Finding, Standing
from runner.doctor.hardware import hardware_findings
from runner.doctor.noise import TRIALS, Noise, noise_of
from runner.doctor.software import software_findings
from runner.interpreter import InterpreterError, InterpreterFacts, check_interpreter
from runner.plan import Plan, plan_run

SCHEMA = "compilewatch.doctor/1"
_STYLES = {Standing.OK: "green", Standing.WARN: "yellow", Standing.FAIL: "red"}


def doctor(
    noise: Annotated[
        bool, typer.Option("--noise", help="Also measure identical eager trials and say what they can show.")
    ] = False,
    trials: Annotated[int, typer.Option(min=MIN_TRIALS, help="Trials of --noise.")] = TRIALS,
    json_: JsonOption = False,
    db: DatabaseOption = None,
    config: ConfigOption = None,
) -> int:
    """What this machine has and lacks for a trustworthy measurement. Example: compilewatch doctor --noise

    Exits 1 when something keeps it from measuring. The trials of --noise are stored as a run of their own.
    """
    settings = settings_of(config, db)
    facts = _interpreter()
    torch_sees = facts.device_count if isinstance(facts, InterpreterFacts) else None
    findings = software_findings(settings, facts) + hardware_findings(torch_sees)
    failed = any(finding.standing is Standing.FAIL for finding in findings)
    if not json_:
        _print(findings)
    measured = None
    if noise and not failed:
        assert isinstance(facts, InterpreterFacts)
        measured = _noise(settings, facts, trials)
        if measured is None:
            return EXIT_INTERRUPTED
    if json_:
        print_document(_document(findings, measured))
    elif measured is not None:
        _print_noise(measured)
    return 1 if failed else 0


def _interpreter() -> InterpreterFacts | CompilewatchError:
    try:
        return check_interpreter(sys.executable)
    except InterpreterError as error:
        return error


def _noise(settings: Settings, facts: InterpreterFacts, trials: int) -> Noise | None:
    """Measure and store the identical trials; None when interrupted."""
    device = resolve_device(settings.run.device, [facts])
    planned = plan_run(
        settings, workloads=[NOISE_WORKLOAD], strategies=["eager"], trials=trials, device=device
    )
    plan = _as_suite(planned)
    with database_of(settings) as database:
        if measure(plan, database, settings, {}).interrupted:
            return None
        measured = [
            statistics.median(trial.latency_samples_ns)
            for trial in trial_records(
                database, Filters(runs=(plan.runs[0].run_id,), workloads=(NOISE_WORKLOAD,))
            )
            if trial.status is Status.OK
        ]
    return noise_of(measured)


def _as_suite(plan: Plan) -> Plan:
    """`plan` under the suite name of noise trials, so that they are found, and judged, among themselves."""
    return plan.model_copy(
        update={
            "runs": tuple(run.model_copy(update={"suite": NOISE_SUITE}) for run in plan.runs),
            "trials": tuple(spec.model_copy(update={"suite": NOISE_SUITE}) for spec in plan.trials),
        }
    )


def _print(findings: list[Finding]) -> None:
    table = Table(box=None, show_header=False, pad_edge=False)
    for finding in findings:
        standing = Text(finding.standing.value, style=_STYLES[finding.standing])
        step = Text(f"\n{finding.next_step}", style="dim") if finding.next_step else Text("")
        table.add_row(standing, Text(finding.subject), Text(finding.fact) + step)
    console().print(table)


def _print_noise(noise: Noise) -> None:
    out = console()
    lines = [
        f"Noise: {plural(noise.trials, 'identical eager trial')} of {NOISE_WORKLOAD} differ by "
        f"{percent(noise.cv)} (standard deviation).",
        *(
            f"  {plural(n, 'trial')} a side show a change of {percent(effect)}."
            for n, effect in noise.visible.items()
        ),
        *(
            f"  A change of {percent(effect)} needs {plural(n, 'trial')} a side."
            for effect, n in noise.needed.items()
        ),
        "  The ratio of eager to compiled within one process is two to three times steadier than latency.",
    ]
    for line in lines:
        out.print(line, markup=False, highlight=False)


def _document(findings: list[Finding], noise: Noise | None) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "findings": [dataclasses.asdict(finding) for finding in findings],
        "noise": None
        if noise is None
        else {
            "workload": NOISE_WORKLOAD,
            "trials": noise.trials,
            "cv": noise.cv,
            "smallest_change": [
                {"trials": trials, "change": effect} for trials, effect in noise.visible.items()
            ],
            "trials_needed": [
                {"change": effect, "trials": trials} for effect, trials in noise.needed.items()
            ],
        },
    }
