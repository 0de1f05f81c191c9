"""`compilewatch run`: measure now, store, print the result table."""

from __future__ import annotations

import logging
import statistics
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from threading import Event
from typing import Annotated, Any

import typer
from pandas import DataFrame

from db.log_lines import OneLine
from db.metrics.canaries import without_canaries
from db.metrics.cases import summarize_cases
from db.queries.filters import Filters
from db.queries.trials import trials_frame
from db.session import Database
from db.units import plural
from db.verdicts.targets import check_targets
from db.verdicts.vocabulary import Verdict
from runner.builds import builds_named
from runner.cli.documents import print_document, run_document
from runner.cli.front import EXIT_INTERRUPTED
from runner.cli.judging import Judged, say_logged
from runner.cli.options import (
    ConfigOption,
    DatabaseOption,
    JsonOption,
    StrategiesOption,
    WorkloadsOption,
    database_of,
    settings_of,
)
from runner.cli.progress import Case, run_progress
from runner.cli.result_table import console, reasons, result_table
from runner.cli.run_verdicts import judge_newest_run, worst_verdicts
from runner.cli.stopping import stop_signal
from runner.cli.target_text import target_lines
from runner.config import BuildSettings, Settings
from runner.device_choice import resolve_device
from runner.execution import Outcome, execute
from runner.free_space import require_space
from runner.interpreter import InterpreterFacts, check_interpreter
from runner.passes import Passes
from runner.plan import Plan, plan_run
from runner.regression_log import log_builds, log_run
from runner.selection import select
from runner.spool import Spool


def run(
    suite: Annotated[
        str | None, typer.Option(help="A suite by name; see `compilewatch list suites`.")
    ] = None,
    workload: WorkloadsOption = None,
    strategy: StrategiesOption = None,
    trials: Annotated[
        int | None,
        typer.Option(min=1, help="Fresh processes per case. A verdict needs 3 a side; 5 % at 2 % noise 10."),
    ] = None,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda:0.")] = "auto",
    python: Annotated[
        list[Path] | None,
        typer.Option(
            "--python",
            metavar="PATH",
            help="An interpreter with another torch, for the configured builds. Repeatable.",
        ),
    ] = None,
    build: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="One of `compilewatch builds list`. Repeatable."),
    ] = None,
    label: Annotated[
        str | None, typer.Option(help="A name for the build, such as '2.13 + driver 580'.")
    ] = None,
    profile: Annotated[
        bool,
        typer.Option(
            "--profile",
            help="Look into the first trial of every case with torch.profiler, in a process apart.",
        ),
    ] = False,
    trace: Annotated[
        bool,
        typer.Option(
            "--trace",
            help="Keep the compiler's own log of every case, and tlparse's report where it is there.",
        ),
    ] = False,
    json_: JsonOption = False,
    db: DatabaseOption = None,
    config: ConfigOption = None,
) -> int:
    """Measure now, store every trial and print the results. Example: compilewatch run --suite smoke

    Exits 1 when a trial failed or a case regressed since the run before, 2 when nothing could be measured,
    130 when interrupted.
    """
    settings = settings_of(config, db)
    # A name typed wrongly is said at once, before an interpreter spends seconds importing torch.
    select(settings, suite=suite, workloads=workload or (), strategies=strategy or ())
    named = [BuildSettings(name=f"python{n}", python=path) for n, path in enumerate(python or [], start=1)]
    named += builds_named(build or (), settings)
    builds = named or list(settings.builds)
    facts = [check_interpreter(str(each.python)) for each in builds] or [check_interpreter(sys.executable)]
    resolved = resolve_device(settings.run.device if device == "auto" else device, facts)
    plan = plan_run(
        settings,
        suite=suite,
        workloads=workload or (),
        strategies=strategy or (),
        trials=trials,
        device=resolved,
        label=label,
        builds=builds,
        passes=Passes(profile=profile, trace_into=settings.data_dir.absolute() if trace else None),
    )
    require_space(settings.data_dir)
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(OneLine("compilewatch: %(message)s"))
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
    with database_of(settings) as database:
        _say_plan(plan, resolved, facts)
        with stop_signal() as stop:
            outcome = _execute(plan, database, settings, stop)
        frame = trials_frame(database, Filters(runs=tuple(planned.run_id for planned in plan.runs)))
        judged = _judge(plan, frame, database, settings)
    _print(plan, frame, judged, settings, json_)
    return _exit_code(outcome, judged)


def _execute(plan: Plan, database: Database, settings: Settings, stop: Event) -> Outcome:
    cases: list[Case] = [(spec.workload.name, spec.strategy.name) for spec in plan.trials]
    with run_progress(cases, _past_durations(database, cases)) as progress:
        spool = Spool(settings.data_dir / "spool")
        return execute(plan, database, spool, progress=progress, is_cancelled=stop.is_set)


def _past_durations(database: Database, cases: Sequence[Case]) -> Mapping[Case, float]:
    """Median seconds a trial of each case took before, on any machine: a guess for the bar."""
    names = Filters(workloads=tuple({workload for workload, _ in cases}))
    frame = trials_frame(database, names).dropna(subset=["ended_at"])
    taken: dict[Case, list[float]] = defaultdict(list)
    recent = frame.tail(500)
    seconds = (recent["ended_at"] - recent["started_at"]).dt.total_seconds()
    for workload, strategy, each in zip(recent["workload"], recent["strategy"], seconds, strict=True):
        taken[workload, strategy].append(each)
    return {case: statistics.median(values) for case, values in taken.items()}


def _judge(plan: Plan, frame: DataFrame, database: Database, settings: Settings) -> Judged | None:
    """Against the run before; builds that took turns against each other. What regressed is remembered."""
    if frame.empty:
        return None
    workloads = tuple(frame["workload"].unique())
    judged = judge_newest_run(database, workloads, settings) if len(plan.runs) == 1 else None
    if judged is None:
        logged = log_builds(database, [planned.run_id for planned in plan.runs], settings)
    else:
        logged = log_run(database, judged.comparison, judged.trials, settings)
    say_logged(logged)
    return judged


def _print(plan: Plan, frame: DataFrame, judged: Judged | None, settings: Settings, as_json: bool) -> None:
    cases = summarize_cases(without_canaries(frame))
    verdicts = worst_verdicts(judged.comparison) if judged else {}
    targets = check_targets(frame, settings.targets)
    if as_json:
        machine, builds = _identities(frame)
        run_ids = [planned.run_id for planned in plan.runs]
        document = run_document(
            run_ids, machine, builds, cases, plan.not_applicable, _failures(frame), verdicts
        )
        checks = [check.model_dump(mode="json") for check in targets]
        print_document({**document, "targets": checks, "policy": settings.policy.to_json()})
        return
    out = console()
    rows = cases.to_dict("records")
    out.print(result_table(rows, plan.not_applicable, verdicts, several_builds=len(plan.runs) > 1))
    for line in (*reasons(plan.not_applicable), *target_lines(targets)):
        out.print(line, markup=False, highlight=False)
    for (_, workload, strategy), failure in _failures(frame).items():
        out.print(
            f"{workload} / {strategy}: {failure['kind']}: {failure['message']}", markup=False, highlight=False
        )


def _identities(frame: DataFrame) -> tuple[dict[str, Any] | None, list[dict[str, Any]]]:
    if frame.empty:
        return None, []
    machine_columns = {
        "machine_id": "id",
        "machine": "name",
        "device": "device",
        "device_name": "device_name",
    }
    build_columns = {
        "build_id": "id",
        "build_label": "label",
        **{
            name: name
            for name in ("torch", "torch_variant", "cuda", "driver", "triton", "cudnn", "python", "os")
        },
    }
    machine = {name: frame[column].iloc[-1] for column, name in machine_columns.items()}
    builds = frame[list(build_columns)].rename(columns=build_columns).drop_duplicates("id")
    plain = builds.astype(object).where(builds.notna(), None)
    return machine, [{str(k): v for k, v in row.items()} for row in plain.to_dict("records")]


def _failures(frame: DataFrame) -> dict[tuple[str, str, str], dict[str, str]]:
    """The newest failure of each case: its kind and first line."""
    failed = frame[frame["status"] == "failed"]
    return {
        (str(row.build_id), str(row.workload), str(row.strategy)): {
            "kind": str(row.failure_kind),
            "message": str(row.failure_message).split("\n", 1)[0],
        }
        for row in failed.itertuples()
    }


def _say_plan(plan: Plan, device: str, facts: Sequence[InterpreterFacts]) -> None:
    where = (
        "the CPU (no GPU found)"
        if device == "cpu" and not any(fact.device_count for fact in facts)
        else device
    )
    versions = ", ".join(f"torch {fact.torch}" for fact in facts)
    cases = {spec.case for spec in plan.trials}
    amount = f"{plural(len(cases), 'case')} in {plural(len(plan.trials), 'trial')}"
    print(f"Measuring {amount} on {where}, {versions}.", file=sys.stderr)


def _exit_code(outcome: Outcome, judged: Judged | None) -> int:
    if outcome.waiting:
        print(
            f"compilewatch: {plural(outcome.waiting, 'trial')} on disk, waiting for the database.\n"
            "  The next `compilewatch run` stores them.",
            file=sys.stderr,
        )
    if outcome.interrupted:
        return EXIT_INTERRUPTED
    regressed = judged is not None and judged.comparison.verdict is Verdict.REGRESSED
    return 1 if outcome.failed or regressed else 0
