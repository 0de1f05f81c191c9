"""`compilewatch reproduce`: a stored trial once more, or as a script for somebody else."""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from compilewatch.db.engine.session import Database
from compilewatch.db.errors import CompilewatchError, ConfigError, one_line
from compilewatch.db.judge.compare.sides import Selection
from compilewatch.db.judge.results import Comparison
from compilewatch.db.queries.trials import trial_record
from compilewatch.db.records.trial import Status, Trial
from compilewatch.db.units import MISSING, count, duration, percent, ratio, size, words
from compilewatch.db.verdicts import gateway
from compilewatch.db.verdicts.issue import ISSUE_SCRIPTS, issue_sides, issue_text
from compilewatch.db.verdicts.sides import builds_of_side, resolve_side
from compilewatch.runner.cli.front import EXIT_INTERRUPTED
from compilewatch.runner.cli.options import (
    ConfigOption,
    DatabaseOption,
    JsonOption,
    database_of,
    one_form,
    settings_of,
)
from compilewatch.runner.config.settings import Settings
from compilewatch.runner.output.documents import print_document
from compilewatch.runner.output.progress import measure
from compilewatch.runner.output.tables import console, plain_table, print_lines
from compilewatch.runner.plan.builds import builds_named
from compilewatch.runner.plan.durations import Durations
from compilewatch.runner.plan.interpreter import check_interpreter
from compilewatch.runner.plan.reproduce import plan_again, script_of
from compilewatch.runner.process.script_run import made_and_run

_FIGURES: tuple[tuple[str, Callable[[Any], str]], ...] = (
    ("latency_ns", duration),
    ("control_latency_ns", duration),
    ("speedup", ratio),
    ("time_to_first_result_ns", duration),
    ("first_call_ns", duration),
    ("peak_bytes", size),
    ("peak_rss_bytes", size),
    ("graphs", count),
    ("graph_breaks", count),
    ("recompiles", count),
)


def reproduce(
    trial_id: Annotated[str, typer.Argument(metavar="TRIAL", help="A trial's id.")],
    script: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write one Python file that needs torch alone; - for standard output.",
            callback=one_form,
        ),
    ] = None,
    python: Annotated[
        Path | None, typer.Option(metavar="PATH", help="Run under this interpreter, with any torch.")
    ] = None,
    build: Annotated[
        str | None, typer.Option(metavar="NAME", help="Run under one of `compilewatch builds list`.")
    ] = None,
    issue: Annotated[
        bool,
        typer.Option(
            "--issue", help="Run a short script under both builds; print all as Markdown.", callback=one_form
        ),
    ] = False,
    base: Annotated[
        str | None,
        typer.Option(metavar="BUILD", help="Of --issue: the other build; the one before."),
    ] = None,
    with_code: Annotated[
        bool, typer.Option("--with-code", help="Of --issue: show the code of a model of your own.")
    ] = False,
    json_: JsonOption = False,
    db: DatabaseOption = None,
    config: ConfigOption = None,
) -> int:
    """Run a stored trial again with this host's definitions, or write a script for it.

    Example: compilewatch reproduce 01KA8Z7Q3V5T2M9N4R6S8W0XYZ --script issue.py

    The new trial is stored in its own run. Exits 1 when it fails. Where workload, strategy or environment
    differ from the record, the differences are printed and nothing runs. With --issue the pages Trial,
    Upgrade and Inbox have the same text from then on.
    """
    settings = settings_of(config, db)
    if issue:
        if python or build:
            raise ConfigError("--issue runs under both builds.", "Leave --python and --build.")
        with database_of(settings, migrate=False, changes=True) as database:
            return _issue(database, settings, trial_id, base, with_code=with_code)
    with database_of(settings, migrate=False, changes=script is None) as database:
        stored = trial_record(database, trial_id)
        if script is not None:
            return _write(script_of(stored, settings), script)
        plan = plan_again(stored, settings, _interpreter(python, build, settings))
        if measure(plan, database, settings, Durations({}))[0].interrupted:
            return EXIT_INTERRUPTED
        again = trial_record(database, plan.trials[0].trial_id)
    if json_:
        print_document(_document(stored, again))
    else:
        _print(stored, again)
    return 1 if again.status is Status.FAILED else 0


def _issue(
    database: Database, settings: Settings, trial_id: str, base: str | None, *, with_code: bool
) -> int:
    """Make the script, run it under both builds, keep what came out, and print the text of every door."""
    chosen = builds_of_side(resolve_side(base, database), database)[-1] if base else None
    sides = issue_sides(database, trial_id, chosen)
    script = made_and_run(
        sides, settings, with_code=with_code, announce=lambda text: print(text, file=sys.stderr)
    )
    ISSUE_SCRIPTS.put(database, script)

    def compare(first: Selection, second: Selection, machine_id: str) -> Comparison:
        return gateway.compare(database, first, second, machine_id=machine_id, policy=settings.policy)

    sys.stdout.write(issue_text(database, sides, compare))
    return 0


def _interpreter(python: Path | None, build: str | None, settings: Settings) -> Path | None:
    if python is not None and build is not None:
        raise ConfigError("--python and --build name two interpreters.", "Give one of them.")
    chosen = builds_named([build], settings)[0].python if build else python
    if chosen is not None:
        check_interpreter(str(chosen))
    return chosen


def _write(text: str, file: Path) -> int:
    if str(file) == "-":
        sys.stdout.write(text)
        return 0
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise CompilewatchError(
            f"{file} cannot be written: {error.strerror}.", "Name a file in a directory you may write to."
        ) from error
    print(f"Wrote {file}. Run it with: python {file}", file=sys.stderr)
    return 0


def figures(trial: Trial) -> dict[str, float | None]:
    """What is compared of two trials; None where it was not measured."""
    latency, control = (
        statistics.median(samples) if samples else None
        for samples in (trial.latency_samples_ns, trial.control_latency_samples_ns)
    )
    cold, memory, compiler = trial.cold_start, trial.memory, trial.compiler
    breaks = compiler.graph_breaks if compiler else None
    recompiles = compiler.recompiles if compiler else None
    return {
        "latency_ns": latency,
        "control_latency_ns": control,
        "speedup": control / latency if control and latency else None,
        "time_to_first_result_ns": cold.total_ns if cold else None,
        "first_call_ns": cold.first_call_ns if cold else None,
        "peak_bytes": memory.peak_bytes if memory else None,
        "peak_rss_bytes": memory.peak_rss_bytes if memory else None,
        "graphs": compiler.graphs if compiler else None,
        "graph_breaks": None if breaks is None else sum(event.count for event in breaks),
        "recompiles": None if recompiles is None else sum(event.count for event in recompiles),
    }


def differences(stored: Trial, again: Trial) -> list[str]:
    """Facts of machine and build that are not what they were: "driver: 570.86 -> 580.10"."""
    lines = []
    for before, now in ((stored.machine, again.machine), (stored.build, again.build)):
        for name, old in before.model_dump(mode="json").items():
            new = getattr(now, name)
            if old != new:
                lines.append(f"{words(name)}: {one_line(str(old), 60)} -> {one_line(str(new), 60)}")
    return lines


def _print(stored: Trial, again: Trial) -> None:
    before, now = figures(stored), figures(again)
    rows = []
    for name, text in _FIGURES:
        old, new = before[name], now[name]
        if old is not None or new is not None:
            change = percent(new / old - 1, signed=True) if old and new is not None else MISSING
            label = words(name.removesuffix("_ns").removesuffix("_bytes"))
            rows.append((label, text(old), text(new), change))
    rows.append(("status", _status(stored), _status(again), ""))
    sides = ("stored", "again", "change")
    case = f"{again.workload.name} / {again.strategy.name}"
    console().print(plain_table((case, *sides), rows, right=sides))
    print_lines(differences(stored, again))
    strategies = " ".join(f"-s {name}" for name in dict.fromkeys(("eager", again.strategy.name)))
    print(
        f"Stored as trial {again.trial_id}. One trial a side decides nothing. For a verdict:\n"
        f"  compilewatch run -w {again.workload.name} {strategies} --trials 10",
        file=sys.stderr,
    )


def _document(stored: Trial, again: Trial) -> dict[str, Any]:
    return {
        "schema": "compilewatch.reproduction/1",
        "workload": again.workload.name,
        "strategy": again.strategy.name,
        "stored": _side(stored),
        "again": _side(again),
        "differences": differences(stored, again),
    }


def _side(trial: Trial) -> dict[str, Any]:
    failure = trial.failure
    return {
        "trial_id": trial.trial_id,
        "run_id": trial.run_id,
        "status": trial.status.value,
        "failure": None if failure is None else {"kind": failure.kind.value, "message": failure.message},
        **figures(trial),
    }


def _status(trial: Trial) -> str:
    return trial.status.value if trial.failure is None else words(trial.failure.kind.value)
