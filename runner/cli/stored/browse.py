"""`compilewatch list` and `show`: what is stored, as tables or JSON."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from statistics import median
from typing import Annotated, Any

import typer
from pandas import DataFrame
from rich.table import Table

from db.cause.compiler_change import autotuned_texts, generated_text
from db.cause.memory_change import held_texts
from db.cause.notes import cache_texts, trial_notes
from db.cause.numerics import numerics_sentence
from db.cause.ranks import rank_texts
from db.cause.roofline import roofline
from db.cause.sentences import cause_of_compiling, explained, family_rows
from db.cause.trials import (
    LISTED,
    compile_cost_text,
    compile_texts,
    device_time_figures,
    eager_before,
    main_figures,
    other_figures,
    profile_rows,
    sample_count_text,
    step_times,
    stream_texts,
    throughput_figures,
    work_text,
)
from db.engine.session import Database
from db.judge.compare.regressions import tally_lines
from db.metrics.eligibility import wild_trials
from db.metrics.wild import WILD
from db.queries import facets
from db.queries.cases.roofs import roofs_of
from db.queries.filters import Filters
from db.queries.people.annotations import annotations_frame
from db.queries.people.regressions import regressions_frame, standing_regressions
from db.queries.records import ranks_of
from db.queries.service.fleet import fleet_workers, launches
from db.queries.trials import trial_record, trials_frame
from db.records.marks import timing_text
from db.records.service.fleet import Launch
from db.records.trial import Memory, SourceKind, Trial
from db.units import MISSING, count, duration, moment, percent, plural, size, words
from runner.cli.options import ConfigOption, DatabaseOption, JsonOption, database_of, settings_of
from runner.config.settings import Settings
from runner.output.documents import frame_rows, print_document
from runner.output.tables import console, facts_table, plain_table, print_lines
from runner.plan.selection import known_strategies, known_suites, known_workloads
from runner.process.trace import REPORT, trace_directory

# What can be measured, as rows for `compilewatch list workloads|strategies|suites`.

Rows = list[dict[str, Any]]


def _workloads(settings: Settings) -> Rows:
    return [
        {
            "workload": definition.name,
            "task": definition.task.value,
            "batch_size": definition.batch_size,
            "shape": ", ".join(f"{key} {value}" for key, value in definition.shape.items()) or None,
            "dtype": definition.dtype,
            "needs": ", ".join(definition.packages) or None,
            "summary": definition.summary or definition.target,
        }
        for definition in known_workloads(settings).values()
    ]


def _strategies(settings: Settings) -> Rows:
    return [
        {
            "strategy": strategy.name,
            "kind": strategy.kind.value,
            "backend": strategy.backend,
            "mode": strategy.mode,
            "cache": strategy.cache.value if strategy.cache else None,
        }
        for strategy in known_strategies(settings).values()
    ]


def _suites(settings: Settings) -> Rows:
    return [
        {
            "suite": suite.name,
            "trials": suite.trials,
            "workloads": ", ".join(suite.workloads),
            "strategies": ", ".join(suite.strategies),
            "summary": suite.summary,
        }
        for suite in known_suites(settings).values()
    ]


CATALOG: dict[str, Callable[[Settings], Rows]] = {
    "workloads": _workloads,
    "strategies": _strategies,
    "suites": _suites,
}


# What `compilewatch show` says of how a trial was sampled, of its memory, its profile and its trace.

Facts = list[tuple[str, str]]


def sampling_texts(trial: Trial) -> Facts:
    """Why there are as many samples as there are."""
    return [] if trial.sampling is None else [("sampling", sample_count_text(trial.sampling))]


def stated_texts(trial: Trial) -> Facts:
    """What its source states of a trial that carries no samples; other figures by the source's own names."""
    if trial.summary is None:
        return []
    stated = [] if trial.latency_samples_ns else main_figures(trial.summary)
    others = [(f"  {name}", text) for name, text in other_figures(trial.summary)]
    return [*stated, *([("figures of the source", "in its own units"), *others] if others else [])]


def memory_texts(memory: Memory) -> Facts:
    """The peaks that are known; the peak of the process where nothing closer is."""
    named = [
        ("peak memory", memory.peak_bytes),
        ("  of eager", memory.control_peak_bytes),
        ("  with compilation", memory.peak_with_compile_bytes),
        ("  reserved", memory.peak_reserved_bytes),
        ("  of the process", memory.peak_rss_bytes),
    ]
    return [(name, size(value)) for name, value in named if value is not None] + held_texts(memory)


def profile_texts(trial: Trial) -> Facts:
    """The sentence first, then the figures and what takes longest."""
    profile = trial.profile
    if profile is None:
        return []
    times = step_times(trial)
    facts: Facts = [("why", explained(trial) or MISSING)]
    for name, eager, own in profile_rows(profile, times):
        facts.append((f"  {name}", eager if profile.control is None else f"{own} (eager {eager})"))
    work = work_text(profile, times)
    facts += [("  work of eager", work)] if work else []
    cause = cause_of_compiling(trial)
    for row in family_rows(cause.change) if cause else ():
        facts.append((f"  {row['family']}", f"{row['after']} (eager {row['before']})"))
    for entry in profile.own.top[:LISTED]:
        facts.append((f"  {duration(entry.self_ns)}", f"{entry.calls:g} x {entry.name}"))
    return facts


def trace_texts(trial: Trial, data_dir: Path) -> Facts:
    """Where the compiler's log and its report lie, as a path where this is the machine that has them.

    What a record says of its paths is shown as text; a path here is made of the trial's id alone.
    """
    trace = trial.trace
    if trace is None:
        return []
    here = trace_directory(data_dir, trial.trial_id)
    if not here.is_dir():
        where = f"{trace.directory} below the data directory of {trial.machine.name}"
        return [("trace", f"{where}, {size(trace.size_bytes)}")]
    none = "none; with `pip install compilewatch[trace]` the next trace gets one"
    report = none if trace.report is None else (here / REPORT).as_uri()
    return [("trace", f"{here}, {size(trace.size_bytes)}"), ("  report", report)]


class Subject(StrEnum):
    """What can be listed."""

    WORKLOADS = "workloads"
    STRATEGIES = "strategies"
    SUITES = "suites"
    RUNS = "runs"
    BUILDS = "builds"
    MACHINES = "machines"
    REGRESSIONS = "regressions"
    ANNOTATIONS = "annotations"
    WORKERS = "workers"
    LAUNCHES = "launches"


_STORED: dict[Subject, Callable[[Database], DataFrame]] = {
    Subject.RUNS: facets.runs_with_contents,
    Subject.BUILDS: facets.builds,
    Subject.MACHINES: facets.machines,
    Subject.REGRESSIONS: regressions_frame,
    Subject.ANNOTATIONS: annotations_frame,
    Subject.WORKERS: lambda database: DataFrame(each.model_dump() for each in fleet_workers(database)),
    Subject.LAUNCHES: lambda database: DataFrame(map(_launch, launches(database))),
}


def _launch(launch: Launch) -> dict[str, Any]:
    return launch.model_dump() | {"state": launch.state(datetime.now(UTC)).value}


# What a person looks for; `--json` has every column.
_SHOWN = {
    Subject.RUNS: (
        *("run_id", "suite", "workloads", "label", "source", "started_at", "status"),
        *("trials", "canaries", "failed_trials"),
    ),
    Subject.BUILDS: (
        *("build_id", "build_label", "torch", "torch_variant", "cuda", "driver", "triton", "trials"),
    ),
    Subject.MACHINES: (
        *("machine_id", "machine", "device", "device_name", "device_count", "trials", "last_seen_at"),
    ),
    Subject.REGRESSIONS: (
        *("regression_id", "recorded_at", "workload", "strategy", "timing", "metric", "change"),
        *("base", "head", "state", "author"),
    ),
    Subject.WORKERS: ("owner", "queue", "served", "started_at", "seen_at", "stopped_at", "measured"),
    Subject.LAUNCHES: ("launched_at", "queue", "host", "state", "exit_code", "worker", "output"),
}
_WHERE_FROM = {
    Subject.REGRESSIONS: "`compilewatch gate` records them.",
    Subject.WORKERS: "Start one with `compilewatch worker`.",
    Subject.LAUNCHES: "Write a [fleet.launch] table into the configuration of the service.",
}


def list_(
    subject: Annotated[Subject, typer.Argument(help="The subject to list.")],
    json_: JsonOption = False,
    db: DatabaseOption = None,
    config: ConfigOption = None,
) -> int:
    """Workloads, strategies and suites to measure; runs, builds, machines, regressions and annotations
    that are stored.

    Of a fleet: its workers, and the launches that bring them. Example: compilewatch list runs
    """
    settings = settings_of(config, db)
    if subject in _STORED:
        with database_of(settings, migrate=False) as database:
            rows = frame_rows(_STORED[subject](database))
            standing = standing_regressions(database) if subject is Subject.REGRESSIONS else ()
            tallies = tally_lines(each.regression for each in standing)
    else:
        rows, tallies = CATALOG[subject.value](settings), []
    if json_:
        print_document({"schema": "compilewatch.list/1", "subject": subject.value, "rows": rows})
        return 0
    if not rows:
        where_from = _WHERE_FROM.get(subject, "Measure with `compilewatch run`.")
        typer.echo(f"No {subject.value} yet. {where_from}")
        return 0
    columns = _SHOWN.get(subject)
    if subject is Subject.REGRESSIONS:
        rows = [row | {"timing": timing_text(row["timing_method"], row["bound"])} for row in rows]
        if not any(row["timing"] for row in rows):
            columns = tuple(name for name in _SHOWN[subject] if name != "timing")
    console().print(_table(rows, columns))
    if subject is Subject.REGRESSIONS:
        print_lines(tallies)
        explained_rows = (row for row in rows if row["explanation"])
        why = (f"{row['workload']} / {row['strategy']}: {row['explanation']}" for row in explained_rows)
        print_lines(dict.fromkeys(why))
    return 0


def show(
    trial_id: Annotated[str, typer.Argument(metavar="TRIAL", help="A trial's id.")],
    json_: JsonOption = False,
    db: DatabaseOption = None,
    config: ConfigOption = None,
) -> int:
    """Every fact of one trial. Example: compilewatch show 01KA8Z7Q3V5T2M9N4R6S8W0XYZ"""
    settings = settings_of(config, db)
    with database_of(settings, migrate=False) as database:
        trial = trial_record(database, trial_id)
        bound = roofline(trial, roofs_of(database, trial.run_id))
        of_case = Filters(
            runs=(trial.run_id,), workloads=(trial.workload.name,), strategies=(trial.strategy.name,)
        )
        siblings = trials_frame(database, of_case)
        ranks = ranks_of(database, trial)
    if json_:
        print_document(trial.model_dump(mode="json", by_alias=True))
        return 0
    facts = facts_of(trial, settings.data_dir) + ([("roofline", bound.sentence)] if bound else [])
    if trial.trial_id in set(siblings["trial_id"][wild_trials(siblings)]):
        facts.append(("set aside", WILD))
    facts += rank_texts(ranks)
    console().print(facts_table(facts))
    return 0


def facts_of(trial: Trial, data_dir: Path) -> list[tuple[str, str]]:
    """Name and text of what a person wants to know of one trial."""
    cold, memory, compiler = trial.cold_start, trial.memory, trial.compiler
    facts = [
        ("trial", trial.trial_id),
        ("run", trial.run_id),
        ("source", _source(trial)),
        ("started", moment(trial.started_at)),
        ("case", f"{trial.workload.name} / {trial.strategy.name}"),
        ("machine", f"{trial.machine.name}: {trial.machine.device_name}"),
        ("build", f"torch {trial.build.torch}, Python {trial.build.python or MISSING}"),
        ("status", trial.status.value),
        *_claimed(trial),
    ]
    if trial.failure is not None:
        facts += [("failure", f"{words(trial.failure.kind.value)}: {trial.failure.message}")]
        facts += [("log", trial.failure.log_tail)] if trial.failure.log_tail else []
    facts += [("note", text) for text in trial_notes(trial)]
    facts += throughput_figures(trial)
    if trial.latency_samples_ns:
        samples = trial.latency_samples_ns
        facts += [("latency", f"{duration(median(samples))} over {plural(len(samples), 'sample')}")]
    if trial.control_latency_samples_ns:
        facts += [("eager control", duration(median(trial.control_latency_samples_ns)))]
    facts += [("eager", ", ".join(eager))] if (eager := eager_before(trial)) else []
    facts += device_time_figures(trial) + stated_texts(trial) + sampling_texts(trial)
    if cold is not None:
        facts += [
            ("time to first result", duration(cold.total_ns)),
            ("first call", duration(cold.first_call_ns)),
        ]
        facts += [("compile cost", cost)] if (cost := compile_cost_text(trial)) else []
        phases = cold.phases_ns.model_dump() if cold.phases_ns else {}
        facts += [
            (f"  {words(name)}", duration(value)) for name, value in phases.items() if value is not None
        ]
    facts += memory_texts(memory) if memory is not None else []
    if compiler is not None:
        facts += [("graphs", count(compiler.graphs)), ("captured operations", count(compiler.ops_captured))]
        facts += cache_texts(compiler)
        facts += [("generated code", text)] if (text := generated_text(compiler)) else []
        facts += [("autotuned", text) for text in autotuned_texts(compiler)]
        events = [("graph break", event) for event in compiler.graph_breaks or ()]
        events += [("recompile", event) for event in compiler.recompiles or ()]
        facts += [("what helps", text) for text in compiler.break_hints or ()]
        facts += [("skipped frame", text) for text in compiler.skipped_frames or ()]
        facts += [("warning", text) for text in compiler.warnings or ()]
        facts += [
            (name, f"{event.count} x {event.location or MISSING}: {event.reason}") for name, event in events
        ]
    if trial.stream is not None:
        facts += stream_texts(trial.stream)
        facts += [(f"  {where}", what) for where, what in compile_texts(trial.stream)]
    if trial.numerics is not None:
        numerics = (words(trial.numerics.status.value), numerics_sentence(trial.numerics))
        facts += [("numerics", ", ".join(filter(None, numerics)))]
    return facts + profile_texts(trial) + trace_texts(trial, data_dir)


def _claimed(trial: Trial) -> list[tuple[str, str]]:
    """Options and environment as the record has them, whoever wrote it."""
    options = [(f"option {name}", str(value)) for name, value in trial.strategy.options.items()]
    environment = trial.build.settings.get("environment")
    if not isinstance(environment, dict):
        return options
    return options + [("environment", f"{name}={value}") for name, value in environment.items()]


def _source(trial: Trial) -> str:
    """Where the numbers come from, and what that leaves open."""
    if trial.source.kind is SourceKind.MEASURED:
        return f"measured by {trial.source.name}"
    samples = len(trial.latency_samples_ns)
    known = plural(samples, "sample") if samples else "only a summary, no samples"
    return f"imported from {trial.source.name}: {known}"


def _table(rows: Sequence[dict[str, Any]], columns: Sequence[str] | None) -> Table:
    shown = {words(name.removesuffix("_at")): name for name in columns or rows[0]}
    unbroken = [heading for heading, name in shown.items() if name.endswith("_id")]
    cells = ([_text(name, row[name]) for name in shown.values()] for row in rows)
    return plain_table(shown, cells, folds=True, unbroken=unbroken)


def _text(column: str, value: Any) -> str:
    if value is None:
        return MISSING
    if column.endswith("_at"):
        return moment(datetime.fromisoformat(value))
    if column == "change":
        return percent(value, signed=True)
    if column == "source" and value != SourceKind.MEASURED:
        return f"imported, {value}"
    return str(value)
