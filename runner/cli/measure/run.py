"""`compilewatch run`: measure now, store, print the result table."""

from __future__ import annotations

import logging
import math
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlencode

import typer
from pandas import DataFrame

from compilewatch.db.columns.metrics import METRICS
from compilewatch.db.engine.session import Database
from compilewatch.db.errors import ConfigError, OneLine, printable
from compilewatch.db.judge.compare.strategies import left_out_parts
from compilewatch.db.judge.targets import check_targets
from compilewatch.db.metrics.cases import summarize_cases
from compilewatch.db.metrics.eligibility import without_canaries
from compilewatch.db.queries.case_parts import BuildCase, notes_of_cases
from compilewatch.db.queries.selection import Filters
from compilewatch.db.queries.trials import trial_records, trials_frame
from compilewatch.db.records.sampling_facts import FEWEST_FOR_P99
from compilewatch.db.records.strategies import WITHOUT, leaves_out
from compilewatch.db.records.trial import StrategyKind, Task
from compilewatch.db.records.vocabulary import Metric, Verdict
from compilewatch.db.units import MISSING, duration, plural
from compilewatch.db.verdicts.case_view import Cell
from compilewatch.runner.catalog.targets import is_target
from compilewatch.runner.catalog.work_tree import work_tree_of
from compilewatch.runner.cli.front import EXIT_CANNOT, EXIT_INTERRUPTED
from compilewatch.runner.cli.judge.judging import (
    ComparisonReport,
    judge_and_log,
    print_logged,
    worst_verdicts,
)
from compilewatch.runner.cli.measure.until_decided import Sides, most_rounds, require_minutes
from compilewatch.runner.cli.measure.until_decided import until_decided as measured_until_decided
from compilewatch.runner.cli.options import (
    ConfigOption,
    DatabaseOption,
    DeviceOption,
    JsonOption,
    LabelOption,
    ProfileOption,
    PythonsOption,
    StacksOption,
    StrategiesOption,
    SuiteOption,
    TraceOption,
    TrialsOption,
    WorkloadsOption,
    database_of,
    seconds_of,
    settings_of,
)
from compilewatch.runner.config.settings import BuildSettings, Settings
from compilewatch.runner.device.host import require_space
from compilewatch.runner.output.comparison_text import target_lines
from compilewatch.runner.output.documents import print_document, run_document
from compilewatch.runner.output.parts import (
    left_out_lines,
    left_out_rows,
    left_out_table,
    submodule_lines,
    submodule_rows,
    submodule_table,
)
from compilewatch.runner.output.progress import UnderWay, measure
from compilewatch.runner.output.tables import (
    answer_lines,
    cells_named,
    console,
    failure_lines,
    newest_failures,
    print_lines,
    reasons,
    result_parts,
    result_table,
)
from compilewatch.runner.plan.builds import builds_named, interpreter_facts
from compilewatch.runner.plan.durations import Durations, by_value, require_fit, stored_durations_s
from compilewatch.runner.plan.interpreter import InterpreterFacts
from compilewatch.runner.plan.plan import Plan, plan_run, require_one_rank
from compilewatch.runner.plan.selection import resolve_device, select
from compilewatch.runner.plan.trial_spec import Diagnostics
from compilewatch.runner.process.execution import RunOutcome
from compilewatch.runner.process.saved_progress import remember_runs
from compilewatch.runner.process.supervise import run_submodules
from compilewatch.runner.regressions.notify import address

MOST_LOSSES = 10_000
"""Steps of which a record holds the losses."""
_P99 = (Metric.LATENCY_P99, METRICS[Metric.LATENCY_P99].column)


def run(
    suite: SuiteOption = None,
    workload: WorkloadsOption = None,
    strategy: StrategiesOption = None,
    trials: TrialsOption = None,
    minutes: Annotated[
        float | None,
        typer.Option(
            "--minutes",
            min=0.1,
            help="Measure the most valuable cases first, and start nothing that takes longer than this.",
        ),
    ] = None,
    until_decided: Annotated[
        bool,
        typer.Option(
            "--until-decided",
            help="Measure this checkout and the commit it started from by turns until each case is decided, "
            "within --minutes and at most --trials a side.",
        ),
    ] = False,
    task: Annotated[
        Task | None,
        typer.Option(
            help="Of workloads named as module:function. By default what the function returns decides."
        ),
    ] = None,
    wait: Annotated[
        str | None,
        typer.Option(help="How long to wait for others to leave the device: 10m, 90s, 0. Unset: for ever."),
    ] = None,
    device: DeviceOption = "auto",
    compile_threads: Annotated[
        int | None,
        typer.Option(
            "--compile-threads",
            min=1,
            help="With how many threads torch compiles. Unset: as torch decides, the CPUs up to 32.",
        ),
    ] = None,
    python: PythonsOption = None,
    build: StacksOption = None,
    label: LabelOption = None,
    profile: ProfileOption = False,
    trace: TraceOption = False,
    losses: Annotated[
        int | None,
        typer.Option(
            "--losses",
            metavar="STEPS",
            min=2,
            max=MOST_LOSSES,
            help="Train each compiled training beside eager for so many steps, in its own process, and say "
            "where its loss or a weight leaves eager's.",
        ),
    ] = None,
    submodules: Annotated[
        bool,
        typer.Option(
            "--submodules",
            help="Compile each direct submodule of one model by itself, too, and rank them by what each "
            "gains beside what it costs.",
        ),
    ] = False,
    leave_out: Annotated[
        bool,
        typer.Option(
            "--leave-out",
            help="Leave each option of a strategy out in turn, too, or of one without options each pass of "
            "Inductor, and list which earn their compile time.",
        ),
    ] = False,
    columns: Annotated[
        str | None,
        typer.Option(
            metavar="NAMES",
            help="Figures of the table by name, such as latency,latency_p95,latency_p99,latency_sd.",
        ),
    ] = None,
    json_: JsonOption = False,
    db: DatabaseOption = None,
    config: ConfigOption = None,
) -> int:
    """Measure now, store every trial and print the results. Example: compilewatch run --suite smoke

    What is measured is judged as `gate` does. Exits 1 when a trial fails or a case regresses; 2 when nothing
    can be measured; 130 when interrupted.
    """
    chosen = None if columns is None else cells_named(columns)
    if until_decided:
        require_minutes(minutes)
    wait_s = None if wait is None else seconds_of("--wait", wait)
    workloads, strategies = workload or (), strategy or ()
    settings = _with_task(settings_of(config, db), task, workloads)
    settings = _with_options(settings, compile_threads, chosen or ())
    # A name typed wrongly is said at once, before an interpreter spends seconds importing torch.
    select(settings, suite=suite, workloads=workloads, strategies=strategies)
    builds = _builds(python, build, settings)
    with UnderWay("asking each interpreter for its torch"):
        facts = interpreter_facts(builds)
    resolved = resolve_device(settings, facts, device)
    named = (settings, suite, workloads)
    by_part = _with_submodules(*named, strategies, resolved, builds) if submodules else []
    by_pass = _with_left_out(*named, strategies) if leave_out else []
    strategies = list(dict.fromkeys((*by_part, *by_pass))) or strategies
    selection = select(settings, suite=suite, workloads=workloads, strategies=strategies)
    plan = plan_run(
        settings,
        suite=suite,
        workloads=workloads,
        strategies=strategies,
        trials=trials or (most_rounds(minutes, selection, len(builds)) if until_decided else None),
        device=resolved,
        label=label,
        builds=builds,
        diagnostics=Diagnostics(
            profile=profile,
            trace_into=settings.data_dir.absolute() if trace else None,
            loss_steps=losses or 0,
        ),
    )
    _require_training(plan, losses)
    require_space(settings.data_dir)
    _warn_on_stderr()
    _warn_of_commits(plan)
    with _database(settings) as database, _sides(plan, database, settings, until_decided) as sides:
        plan = sides.plan
        durations = Durations(stored_durations_s(database, plan))
        if minutes is not None:
            plan = by_value(plan, durations)
            require_fit(plan, durations, 60 * minutes, together=len(plan.runs) if until_decided else 1)
        _print_plan(plan, resolved, facts, minutes if until_decided else None)
        seconds = math.inf if minutes is None else 60 * minutes
        outcome, budget = measure(
            *(plan, database, settings, durations, seconds, wait_s),
            wanted=sides.wanted,
            begun=sides.begun,
        )
        # Of a base that was measured beside it the table has nothing.
        judged = tuple(run for run in plan.runs if run.run_id in sides.head)
        plan = plan.model_copy(update={"runs": judged})
        frame = trials_frame(database, Filters(runs=_run_ids(plan)))
        report = None if outcome.interrupted else _judge(plan, frame, database, settings, fresh=sides.fresh)
        ended = sides.lines(durations, budget)
        notes = notes_of_cases(database, Filters(runs=_run_ids(plan)))
        parts = _parts(plan, frame, database, settings, submodules, leave_out)
    _print(plan, frame, report, settings, json_, parts, notes, chosen)
    for line in ended:
        print(printable(line), file=sys.stderr)
    _print_runs(plan, settings)
    if not outcome.interrupted and outcome.measured:
        remember_runs(settings, _run_ids(plan))
    if settings.fleet.spool_dir:
        where = settings.fleet.spool_dir
        print(f"compilewatch: The trials are in {where}; no database has them yet.", file=sys.stderr)
        print(f"  Type `compilewatch import {where}` where the database is.", file=sys.stderr)
    return _exit_code(outcome, report)


def _require_training(plan: Plan, losses: int | None) -> None:
    """Raises ConfigError where `losses` are asked for and no case can have them."""
    if losses is not None and not any(
        (spec.workload.task is Task.TRAINING or spec.workload.task_is_open)
        and spec.strategy.kind is StrategyKind.COMPILE
        and spec.workload.ranks is None
        for spec in plan.trials
    ):
        raise ConfigError(
            "--losses is for a training that is compiled, in one process.",
            "Name one with a strategy: --workload mlp-train --strategy default.",
        )


def _sides(
    plan: Plan, database: Database, settings: Settings, until_decided: bool
) -> AbstractContextManager[Sides]:
    if until_decided:
        return measured_until_decided(plan, database, settings)
    return nullcontext(Sides(plan, _run_ids(plan)))


def _print_runs(plan: Plan, settings: Settings) -> None:
    for run_id in _run_ids(plan):
        print(f"Run: {run_id}", file=sys.stderr)
        if page := address(settings.notify.base_url, f"/trial?{urlencode({'run': run_id})}"):
            print(f"Page: {page}", file=sys.stderr)


def _run_ids(plan: Plan) -> tuple[str, ...]:
    return tuple(planned.run_id for planned in plan.runs)


def _with_options(settings: Settings, compile_threads: int | None, chosen: Sequence[Cell]) -> Settings:
    """With these threads that compile, and with the steps that a p99 among the figures needs."""
    if compile_threads is not None:
        settings = settings.with_run(compile_threads=compile_threads)
    if any(each.name in _P99 for each in chosen):
        settings = settings.with_run(samples=max(settings.run.samples, FEWEST_FOR_P99))
    return settings


def _with_task(settings: Settings, task: Task | None, workloads: Sequence[str]) -> Settings:
    if task is None:
        return settings
    others = [name for name in workloads if not is_target(name)]
    if others or not workloads:
        named = others[0] if others else "A suite"
        raise ConfigError(
            f"{named} has a task of its own; --task is for workloads named as module:function.",
            "Leave out --task, or set `task` in the workload's [[workload]].",
        )
    return settings.with_run(task=task)


def _with_submodules(
    settings: Settings,
    suite: str | None,
    workloads: Sequence[str],
    strategies: Sequence[str],
    device: str,
    builds: Sequence[BuildSettings],
) -> list[str]:
    """The strategies, and those of `torch.compile` for each direct submodule of the one workload."""
    chosen = select(settings, suite=suite, workloads=workloads, strategies=strategies)
    if len(chosen.workloads) != 1:
        raise ConfigError("--submodules is for one model.", "Name it: --workload encoder.")
    require_one_rank(chosen.workloads[0], "--submodules")
    whole = [s.name for s in chosen.strategies if s.kind is StrategyKind.COMPILE and s.scope == "full"]
    if not whole:
        raise ConfigError("--submodules needs a strategy that compiles.", "Add --strategy default.")
    spec = plan_run(
        settings, suite=suite, workloads=workloads, strategies=whole, device=device, builds=builds
    ).trials[0]
    with UnderWay(f"building {spec.workload.name}"):
        paths = run_submodules(spec, spec.interpreter or sys.executable)
    if not paths:
        raise ConfigError(f"{chosen.workloads[0].name} has no submodules.", "Name a model, not a function.")
    by_part = [f"{name}+submodule:{path}" for name in whole for path in paths]
    return [*(strategy.name for strategy in chosen.strategies), *by_part]


def _with_left_out(
    settings: Settings, suite: str | None, workloads: Sequence[str], strategies: Sequence[str]
) -> list[str]:
    """The strategies, and each that compiles by Inductor with every option or pass of it left out in turn."""
    chosen = select(settings, suite=suite, workloads=workloads, strategies=strategies).strategies
    whole = [s for s in chosen if s.kind is StrategyKind.COMPILE and s.backend == "inductor"]
    if not whole:
        raise ConfigError("--leave-out needs a strategy that compiles.", "Add --strategy default.")
    left_out = [f"{each.name}{WITHOUT}:{option}" for each in whole for option in leaves_out(each)]
    return [*(strategy.name for strategy in chosen), *left_out]


def _parts(
    plan: Plan, frame: DataFrame, database: Database, settings: Settings, submodules: bool, leave_out: bool
) -> dict[str, list[dict[str, Any]]]:
    """The rows of --submodules and --leave-out, by the key that the document has them under."""
    found: dict[str, list[dict[str, Any]]] = {}
    if submodules:
        cases = summarize_cases(without_canaries(frame)).to_dict("records")
        found["submodules"] = submodule_rows(trial_records(database, Filters(runs=_run_ids(plan))), cases)
    if leave_out:
        found["left_out"] = left_out_rows(left_out_parts(frame, settings.policy))
    return found


@contextmanager
def _database(settings: Settings) -> Iterator[Database]:
    """The configured one; where trials go to `[fleet] spool_dir`, an empty one for this command alone."""
    if settings.fleet.spool_dir is None:
        with database_of(settings) as database:
            yield database
        return
    with (
        tempfile.TemporaryDirectory(prefix="compilewatch-run-") as directory,
        database_of(
            settings.model_copy(update={"database_url": f"sqlite:///{directory}/run.db"}), changes=False
        ) as own,
    ):
        yield own


def _builds(python: list[Path] | None, build: list[str] | None, settings: Settings) -> list[BuildSettings]:
    """The builds that were named, else those of the configuration; none stands for this interpreter."""
    named = [BuildSettings(name=f"python{n}", python=path) for n, path in enumerate(python or [], start=1)]
    named += builds_named(build or (), settings)
    return named or list(settings.builds)


def _warn_on_stderr() -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(OneLine("compilewatch: %(message)s"))
    logging.basicConfig(level=logging.WARNING, handlers=[handler])


def _warn_of_commits(plan: Plan) -> None:
    """On standard error whose commit git does not tell: no gate can judge it by its history."""
    trees = {work_tree_of(spec.workload.target, spec.workload.path) for spec in plan.trials}
    for tree in sorted((each for each in trees if each is not None), key=lambda each: each.root):
        if (problem := tree.problem()) is not None:
            print(f"compilewatch: The commit of {tree.root} is not known: {problem[0]}.", file=sys.stderr)
            print(f"  {problem[1]} Without it the gate cannot judge this run.", file=sys.stderr)


def _judge(
    plan: Plan, frame: DataFrame, database: Database, settings: Settings, *, fresh: bool
) -> ComparisonReport | None:
    """Against its base; builds that took turns against each other. What regressed is remembered, as confirmed
    where the trials are `fresh`.
    """
    if frame.empty:
        return None
    workloads = tuple(frame["workload"].unique())
    report, logged = judge_and_log(database, _run_ids(plan), workloads, settings, fresh=fresh)
    print_logged(logged)
    return report


def _print(
    plan: Plan,
    frame: DataFrame,
    report: ComparisonReport | None,
    settings: Settings,
    as_json: bool,
    parts: Mapping[str, list[dict[str, Any]]],
    notes: Mapping[BuildCase, list[str]],
    chosen: Sequence[Cell] | None,
) -> None:
    cases = summarize_cases(without_canaries(frame))
    verdicts = worst_verdicts(report.comparison) if report else {}
    targets = check_targets(frame, settings.target)
    if as_json:
        machine, builds = _identities(frame)
        failures = newest_failures(frame)
        document = run_document(
            _run_ids(plan), machine, builds, cases, plan.not_applicable, failures, verdicts, notes
        )
        checks = [check.model_dump(mode="json") for check in targets]
        print_document({**document, **parts, "targets": checks, "policy": settings.policy.to_json()})
        return
    out = console()
    rows = cases.to_dict("records")
    names = _build_names(plan, frame)
    if chosen is None:
        table, below = result_parts(
            rows, plan.not_applicable, verdicts, builds=names, notes=notes, columns=out.width
        )
    else:
        table, below = (
            result_table(rows, plan.not_applicable, verdicts, builds=names, notes=notes, chosen=chosen),
            [],
        )
    out.print(table)
    print_lines(below)
    if "submodules" in parts:
        out.print(submodule_table(parts["submodules"]))
        print_lines(submodule_lines(parts["submodules"]))
    if "left_out" in parts:
        out.print(left_out_table(parts["left_out"]))
        print_lines(left_out_lines(parts["left_out"]))
    print_lines([*reasons(plan.not_applicable), *target_lines(targets)])
    print_lines(failure_lines(newest_failures(frame)))
    print_lines(answer_lines(rows))


def _build_names(plan: Plan, frame: DataFrame) -> dict[str, str]:
    """What the builds of a plan are called here, by id; none where it measures one."""
    if len(plan.runs) == 1:
        return {}
    called = {planned.run_id: planned.build for planned in plan.runs}
    names: dict[str, list[str]] = {}
    for run_id, build_id in frame[["run_id", "build_id"]].drop_duplicates().itertuples(index=False):
        names.setdefault(str(build_id), []).append(called[run_id] or MISSING)
    return {build_id: ", ".join(some) for build_id, some in names.items()}


def _identities(frame: DataFrame) -> tuple[dict[str, Any] | None, list[dict[str, Any]]]:
    if frame.empty:
        return None, []
    machine_columns = {"machine_id": "id", "machine": "name"}
    machine_columns |= {name: name for name in ("device", "device_name")}
    same = ("torch", "torch_variant", "cuda", "driver", "triton", "cudnn", "python", "os")
    build_columns = {"build_id": "id", "build_label": "label"} | {name: name for name in same}
    machine = {name: frame[column].iloc[-1] for column, name in machine_columns.items()}
    builds = frame[list(build_columns)].rename(columns=build_columns).drop_duplicates("id")
    plain = builds.astype(object).where(builds.notna(), None)
    return machine, [{str(k): v for k, v in row.items()} for row in plain.to_dict("records")]


def _print_plan(plan: Plan, device: str, facts: Sequence[InterpreterFacts], minutes: float | None) -> None:
    """`minutes` are those that trials are added for until they decide, None where their number is known."""
    without_gpu = device == "cpu" and not any(fact.device_count for fact in facts)
    where = "the CPU (no GPU found)" if without_gpu else device
    versions = ", ".join(f"torch {fact.torch}" for fact in facts)
    cases = {spec.case for spec in plan.trials}
    amount = f"{plural(len(cases), 'case')} in {plural(len(plan.trials), 'trial')}"
    if minutes is not None:
        sides = list(dict.fromkeys(spec.build for spec in plan.trials if spec.build is not None))
        turns = f" of {' and '.join(sides)} by turns" if len(sides) > 1 else ""
        amount = f"{plural(len(cases), 'case')}{turns} for {duration(60e9 * minutes)} at most"
    print(f"Measuring {amount} on {where}, {versions}.", file=sys.stderr)


def _exit_code(outcome: RunOutcome, report: ComparisonReport | None) -> int:
    if outcome.waiting:
        print(
            f"compilewatch: {plural(outcome.waiting, 'trial')} on disk, waiting for the database.\n"
            "  The next `compilewatch run` stores them.",
            file=sys.stderr,
        )
    if outcome.interrupted:
        return EXIT_INTERRUPTED
    if not outcome.measured:
        # Another process had the device, or the control series took all the minutes.
        return EXIT_CANNOT
    # What somebody accepted is no regression, here as in the gate.
    regressed = report is not None and report.standing_verdict is Verdict.REGRESSED
    return 1 if outcome.failed or regressed else 0
