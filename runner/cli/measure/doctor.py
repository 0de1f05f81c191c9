"""`compilewatch doctor`: what this machine has and lacks, and how small a change it can show."""

from __future__ import annotations

import dataclasses
import itertools
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from compilewatch.db.columns.metrics import METRICS
from compilewatch.db.engine.session import Database
from compilewatch.db.errors import CompilewatchError, ConfigError
from compilewatch.db.judge.statistics.noise_floor import (
    CLOCKS,
    MIN_PROCESSES,
    SPEEDUP,
    TRIALS_A_SIDE,
    NoiseFloor,
    noise_floors,
    scatters,
)
from compilewatch.db.queries.selection import Filters
from compilewatch.db.queries.trials import trials_frame
from compilewatch.db.records.trial import bound_word
from compilewatch.db.units import duration, percent
from compilewatch.runner.cli.front import EXIT_INTERRUPTED
from compilewatch.runner.cli.measure.machine_checks import (
    DoctorFinding,
    Standing,
    hardware_findings,
    software_findings,
)
from compilewatch.runner.cli.measure.validation import (
    PROCESSES,
    AimVerdict,
    Check,
    Measured,
    Validator,
    gate_checks,
    plan_validation,
    probe_checks,
    variation_checks,
)
from compilewatch.runner.cli.options import ConfigOption, DatabaseOption, JsonOption, database_of, settings_of
from compilewatch.runner.config.settings import Settings
from compilewatch.runner.output.documents import print_document
from compilewatch.runner.output.progress import TimeLeft, UnderWay, run_progress, stop_signal
from compilewatch.runner.output.tables import console, plain_table, print_lines
from compilewatch.runner.plan.durations import Durations
from compilewatch.runner.plan.interpreter import InterpreterError, InterpreterFacts, check_interpreter
from compilewatch.runner.plan.selection import resolve_device
from compilewatch.runner.process.spool import Spool

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
    for name, value in (("--minutes", minutes), ("--processes", processes)):
        if value is not None and not validate:
            raise ConfigError(f"{name} is for a validation.", "Add --validate, or leave it out.")
    settings = settings_of(config, db)
    try:
        with UnderWay("asking the interpreter for its torch"):
            facts: InterpreterFacts | CompilewatchError = check_interpreter(sys.executable)
    except InterpreterError as error:
        facts = error
    torch_sees = facts.device_count if isinstance(facts, InterpreterFacts) else None
    findings = software_findings(settings, facts) + hardware_findings(torch_sees)
    failed = any(finding.standing is Standing.FAIL for finding in findings)
    if not json_:
        _print(findings)
    outcome = None
    if validate and not failed:
        assert isinstance(facts, InterpreterFacts)
        device = resolve_device(settings, [facts])
        with database_of(settings) as database:
            outcome = validation_of(
                settings, database, device, minutes=minutes or MINUTES, processes=processes or PROCESSES
            )
        if outcome.measured.interrupted:
            return EXIT_INTERRUPTED
    if json_:
        print_document(
            {
                "schema": SCHEMA,
                "findings": [dataclasses.asdict(finding) for finding in findings],
                "validation": None if outcome is None else validation_document(outcome),
            }
        )
    elif outcome is not None:
        print_validation(outcome)
    return 1 if failed or (outcome is not None and not outcome.floors) else 0


def _print(findings: list[DoctorFinding]) -> None:
    table = Table(box=None, show_header=False, pad_edge=False)
    for finding in findings:
        standing = Text(finding.standing.value, style=_STYLES[finding.standing])
        step = Text(f"\n{finding.next_step}", style="dim") if finding.next_step else Text("")
        table.add_row(standing, Text(finding.subject), Text(finding.fact) + step)
    console().print(table)


_VERDICT_STYLES = {AimVerdict.MET: "green", AimVerdict.MISSED: "red", AimVerdict.UNKNOWN: "yellow"}
_CLOCKS = {metric: METRICS[metric].word for metric in (*CLOCKS, SPEEDUP)}
_NAMES = _CLOCKS | {
    "verified_samples": "verified samples",
    "cupti_agreement": "gated time against CUPTI",
    "do_bench_agreement": "gated time against do_bench",
    "l2_flush": "effect of the L2 flush",
    "graph_launches": "launches of a CUDA graph",
    "probes": "the process that probes",
}
CPU_ONLY = "Device time, issue time, agreement with CUPTI and do_bench, the L2 flush and graphs need a GPU."


@dataclass(frozen=True)
class Validation:
    """What a validation found. `checks` are empty where no workload had three processes."""

    device: str
    measured: Measured
    checks: tuple[Check, ...]
    floors: tuple[NoiseFloor, ...]


def validation_of(
    settings: Settings, database: Database, device: str, *, minutes: float, processes: int
) -> Validation:
    """Measure, store and check. Raises as `runner.plan.plan.plan_run` does, and DatabaseError."""
    plan = plan_validation(settings, device, processes)
    cases = [(spec.workload.name, spec.strategy.name) for spec in plan.trials]
    ends_at = time.monotonic() + 60 * minutes
    time_left = TimeLeft(cases, Durations({}), lambda: max(0.0, ends_at - time.monotonic()))
    with stop_signal() as stop, run_progress(len(cases), time_left) as progress:
        measured = Validator(
            database,
            Spool(settings.data_dir / "spool"),
            budget_s=60 * minutes,
            is_stopped=stop.is_set,
            progress=progress,
        ).run(plan)
    variations = scatters(trials_frame(database, Filters(runs=(measured.run_id,))))
    checks = list(variation_checks(variations))
    if device != "cpu":
        checks += gate_checks(measured.trials)
        checks += probe_checks(measured.probed) if measured.probed else ()
    return Validation(device, measured, tuple(checks), noise_floors(variations))


def print_validation(outcome: Validation) -> None:
    """One table of figures, aims and verdicts, then what was cut and what the machine can show."""
    table = plain_table(("figure", "of", "bound", "found", "aim", "verdict"))
    order = list(_NAMES)
    checks = sorted(outcome.checks, key=lambda check: order.index(check.name))
    for name, group in itertools.groupby(checks, key=lambda check: check.name):
        for number, check in enumerate(group):
            verdict = Text(check.verdict.value, style=_VERDICT_STYLES[check.verdict])
            named = _NAMES[name] if number == 0 else ""
            cells = (named, check.case, bound_word(check.bound), check.fact, check.aim)
            table.add_row(*(Text(cell) for cell in cells), verdict)
    console().print(table)
    print_lines(_lines(outcome))


def _lines(outcome: Validation) -> Iterator[str]:
    if any(check.name in _CLOCKS for check in outcome.checks):
        yield "Of a time or a speedup, found is the variation between fresh processes (standard deviation)."
    yield from outcome.measured.cut
    if outcome.device == "cpu":
        yield CPU_ONLY
    measured = outcome.measured
    yield f"It took {duration(measured.seconds * 1e9)} and is stored as run {measured.run_id}."
    if not outcome.floors:
        yield "No workload has a figure, so this machine has no noise floor from it."
        return
    yield f"The machine's noise floor, the smallest change that {TRIALS_A_SIDE} trials a side show:"
    for floor in outcome.floors:
        of_class = f", {bound_word(floor.bound)}" if floor.bound else ""
        yield f"  {percent(floor.change)} in {_CLOCKS[floor.metric]}{of_class}"


def validation_document(outcome: Validation) -> dict[str, Any]:
    """As `doctor --json` has it under `validation`."""
    return {
        "run_id": outcome.measured.run_id,
        "device": outcome.device,
        "seconds": outcome.measured.seconds,
        "trials": len(outcome.measured.trials),
        "checks": [dataclasses.asdict(check) for check in outcome.checks],
        "noise_floor": [
            {**dataclasses.asdict(floor), "smallest_change": floor.change, "trials": TRIALS_A_SIDE}
            for floor in outcome.floors
        ],
        "cut": outcome.measured.cut,
        "not_measured": CPU_ONLY if outcome.device == "cpu" else None,
    }
