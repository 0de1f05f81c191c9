"""`compilewatch list`: what can be measured and what is stored, as tables or JSON."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from functools import partial
from typing import Annotated, Any

import typer
from pandas import DataFrame
from rich.table import Table

from compilewatch.db.cause.notes import PAYS_BELOW_PERCENT
from compilewatch.db.cells import harmless, plain, rows_of, table_row
from compilewatch.db.engine.session import Database
from compilewatch.db.errors import ConfigError
from compilewatch.db.judge.compare.recorded_regressions import tally_lines
from compilewatch.db.queries import facets
from compilewatch.db.queries.named import require_stored
from compilewatch.db.queries.selection import Filters
from compilewatch.db.queries.trials import listed_trials
from compilewatch.db.records.hosts import Launch
from compilewatch.db.records.trial import SourceKind, StrategyKind, timing_text
from compilewatch.db.service.annotations import annotations_frame
from compilewatch.db.service.fleet import fleet_workers, launches
from compilewatch.db.service.regressions import regressions_frame, standing_regressions
from compilewatch.db.units import MISSING, duration, moment, percent, plural, words
from compilewatch.db.verdicts.case_rows import listed_cases
from compilewatch.db.verdicts.case_view import (
    CELLS,
    DOORS,
    LISTED,
    Case,
    Cell,
    Door,
    case_texts,
    case_view,
    rows_of_door,
)
from compilewatch.db.verdicts.sides import builds_named
from compilewatch.db.verdicts.steps import with_later
from compilewatch.runner.cli import options
from compilewatch.runner.cli.options import (
    BuildsOption,
    ConfigOption,
    DatabaseOption,
    JsonOption,
    StrategiesOption,
    database_of,
    machine_named,
    one_form,
    only,
    settings_of,
)
from compilewatch.runner.config.settings import Settings
from compilewatch.runner.output.documents import print_document
from compilewatch.runner.output.tables import cells_named, console, plain_table, print_lines, print_markdown
from compilewatch.runner.plan.selection import known_strategies, known_suites, known_workloads

Columns = Sequence[Cell]


def read_rows(database: Database, filters: Filters, door: Door) -> list[Case]:
    """The cases that `filters` let through; those that `door` has as rows."""
    require_stored(database, filters)
    return rows_of_door(listed_cases(database, filters), door)


@dataclass(frozen=True)
class Form:
    """How a list is printed; none of them: as a table."""

    json: bool = False
    csv: bool = False
    markdown: bool = False


def wanted_columns(door: Door, names: str | None) -> Columns | None:
    """Those of a preset or those named; None where nothing is asked for. Raises ConfigError for both."""
    if names is None:
        return None if door is Door.RUN else DOORS[door]
    if door is not Door.RUN:
        raise ConfigError("A preset has columns of its own.", "Choose --preset or --columns.")
    return [CELLS["workload"], CELLS["strategy"], *cells_named(names)]


_MEASURED_BY = {
    Door.REGIONAL: "`compilewatch run -s default -s default+regional`",
    Door.VARIANTS: '`variants = ["float32", "bf16"]` of a [[workload]], and `compilewatch run`',
    Door.SCALING: "`ranks = [1, 2]` of a [[workload]], and `compilewatch run`",
}
"""What measures cases that a preset has as rows."""


def print_cases(rows: Sequence[Case], door: Door, chosen: Columns | None, form: Form) -> None:
    """Without columns asked for, a table has those of `run`, JSON and CSV have every one and the notes."""
    if form.json or form.csv:
        cells = chosen or LISTED
        if form.json:
            _print_json(rows, cells)
        else:
            _print_csv(rows, cells)
    elif not rows:
        with_what = _MEASURED_BY.get(door, "`compilewatch run`")
        print_lines([f"No stored case has a row in this table. Measure with {with_what}."])
    else:
        usual = (CELLS["workload"], CELLS["strategy"], *DOORS[Door.RUN], CELLS["notes"])
        _print_table(rows, chosen or usual, markdown=form.markdown)


def _print_table(rows: Sequence[Case], columns: Columns, *, markdown: bool) -> None:
    """A table on a terminal, or of Markdown, with machine, torch and build where there are several."""
    apart = [
        CELLS[name]
        for name, telling in (("machine", "machine_id"), ("torch", "torch"), ("build_id", "build_id"))
        if len({row[telling] for row in rows}) > 1
    ]
    if _torch_tells(rows):
        apart = [each for each in apart if each.name != "build_id"]
    # Ends stand beside their figure where people read.
    shown = [*apart, *(each for each in columns if not each.name.endswith("_interval"))]
    headings = [each.heading for each in shown]
    cells = [case_texts(row, shown) for row in rows]
    if markdown:
        rule = " | ".join("---:" if each.right else "---" for each in shown)
        print_markdown([table_row(*headings), f"| {rule} |", *(table_row(*each) for each in cells)])
        return
    right = [each.heading for each in shown if each.right]
    console().print(plain_table(headings, cells, right=right, optional=_may_go(shown)))
    if any(each.name in ("gpu_utilization", "gpu_utilization_percent") for each in columns):
        print_lines([_how_often_idle_gpus_gain(rows)])


def _may_go(columns: Columns) -> list[str]:
    """Headings of figures in the order in which they go: first those that `run` does without too, the notes
    at last.
    """
    names = ("workload", "strategy", "machine", "torch", "build_id")
    figures = [each for each in reversed(columns) if each.name not in names]
    narrow = (*DOORS[Door.RUN_NARROW], CELLS["notes"])
    return [each.heading for each in sorted(figures, key=lambda each: each in narrow)]


def _how_often_idle_gpus_gain(rows: Sequence[Case]) -> str:
    """How often the rule of `PAYS_BELOW_PERCENT` is right: of eager cases below it and of the others, in how
    many a strategy of the same build is shown to be faster.
    """
    busy: dict[tuple[object, ...], float] = {}
    gains: dict[tuple[object, ...], bool] = {}
    for row in rows:
        place = tuple(row[name] for name in ("machine_id", "build_id", "workload_id"))
        if row["strategy_kind"] != StrategyKind.EAGER.value:
            if (low := plain(row["speedup_low"])) is not None:
                gains[place] = gains.get(place, False) or low > 1
        elif (utilization := plain(row["gpu_utilization_percent"])) is not None:
            busy[place] = utilization
    known = [(busy[place] < PAYS_BELOW_PERCENT, gains[place]) for place in busy.keys() & gains.keys()]
    if not known:
        return "No eager case here has a GPU utilization and a strategy whose speedup has an interval."
    below, above = ([gained for is_below, gained in known if is_below is side] for side in (True, False))
    return (
        f"Below {PAYS_BELOW_PERCENT} % of GPU utilization compiling is shown to pay in {sum(below)} of "
        f"{len(below)} eager cases, from there on in {sum(above)} of {len(above)}."
    )


def _torch_tells(rows: Sequence[Case]) -> bool:
    """Whether the builds of a machine have each a torch of its own."""
    builds = {(row["machine_id"], row["build_id"], row["torch"]) for row in rows}
    return len({(machine, torch) for machine, _, torch in builds}) == len(builds)


def _print_json(rows: Sequence[Case], cells: Columns) -> None:
    named = [_ids(row) | case_view(row, cells) for row in rows]
    # As /api/v1/cases: of all trials of a build, where a history has each run by itself.
    print_document({"schema": "compilewatch.list/1", "subject": "cases", "trials_of": "build", "rows": named})


def _print_csv(rows: Sequence[Case], cells: Columns) -> None:
    """A header and a line a case; nested values are JSON, what is missing is empty."""
    writer = csv.writer(sys.stdout)
    names = dict.fromkeys((*_IDS, *(each.name for each in cells)))
    writer.writerow(names)
    table = (_ids(row) | case_view(row, cells) for row in rows)
    writer.writerows([_csv_cell(row[name]) for name in names] for row in table)


_IDS = ("case_id", "machine", "build_id", "torch", "workload", "strategy")


def _ids(row: Case) -> dict[str, Any]:
    return {name: plain(row[name]) for name in _IDS}


def _csv_cell(value: Any) -> Any:
    if isinstance(value, str):
        return harmless(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list) else value


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


class Subject(StrEnum):
    """What can be listed."""

    WORKLOADS = "workloads"
    STRATEGIES = "strategies"
    SUITES = "suites"
    RUNS = "runs"
    TRIALS = "trials"
    CASES = "cases"
    BUILDS = "builds"
    MACHINES = "machines"
    REGRESSIONS = "regressions"
    ANNOTATIONS = "annotations"
    WORKERS = "workers"
    LAUNCHES = "launches"


class Preset(StrEnum):
    """Tables of cases with columns of their own."""

    SCENARIO = Door.SCENARIO.value
    THROUGHPUT = Door.THROUGHPUT.value
    REGIONAL = Door.REGIONAL.value
    STRATEGIES = Door.STRATEGIES.value
    VARIANTS = Door.VARIANTS.value
    SCALING = Door.SCALING.value


_NEWEST_TRIALS = 50

_STORED: dict[Subject, Callable[[Database], DataFrame]] = {
    Subject.RUNS: facets.runs_with_contents,
    Subject.BUILDS: facets.builds,
    Subject.MACHINES: facets.machines,
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
    Subject.TRIALS: (
        *("trial_id", "started_at", "workload", "strategy", "machine", "torch", "status", "failure_kind"),
        *("latency_ns", "control_latency_ns"),
    ),
    Subject.BUILDS: (
        *("build_id", "build_label", "torch", "torch_variant", "cuda", "driver", "triton", "trials"),
    ),
    Subject.MACHINES: (
        *("machine_id", "machine", "device", "device_name", "device_count", "trials", "last_seen_at"),
    ),
    Subject.REGRESSIONS: (
        *("regression_id", "recorded_at", "workload", "strategy", "timing", "metric", "change"),
        *("base", "head", "state", "now", "author"),
    ),
    Subject.WORKERS: ("owner", "queue", "served", "started_at", "seen_at", "stopped_at", "measured"),
    Subject.LAUNCHES: ("launched_at", "queue", "host", "state", "exit_code", "worker", "output"),
}
# What goes first where a terminal has no room for all: an id that is cut is none that can be typed.
_MAY_GO = (
    *("author", "timing", "control_latency_ns", "output", "measured", "device_count"),
    *("driver", "triton", "cuda", "canaries", "source", "label", "machine", "torch", "failure_kind"),
    *("recorded_at", "base", "stopped_at", "torch_variant", "device", "suites", "worker"),
    *("suite", "started_at", "head"),
)
_WHERE_FROM = {
    Subject.REGRESSIONS: "`compilewatch gate` records them.",
    Subject.WORKERS: "Start one with `compilewatch worker`.",
    Subject.LAUNCHES: "Write a [fleet.launch] table into the configuration of the service.",
}


def list_(
    subject: Annotated[Subject, typer.Argument(help="The subject to list.")],
    run: Annotated[
        str | None,
        typer.Option("--run", metavar="ID", help="Of a run alone.", autocompletion=options.runs),
    ] = None,
    workload: Annotated[
        list[str] | None,
        typer.Option(
            "--workload",
            "-w",
            metavar="W",
            help="Trials or cases of a workload alone. Repeatable.",
            autocompletion=options.stored_workloads,
        ),
    ] = None,
    strategy: StrategiesOption = None,
    machine: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Cases of a machine alone.", autocompletion=options.machines),
    ] = None,
    build: BuildsOption = None,
    preset: Annotated[
        Preset | None,
        typer.Option(help="Of cases: a table with columns, and rows, of its own."),
    ] = None,
    columns: Annotated[
        str | None,
        typer.Option(metavar="NAMES", help="Of cases: figures by name, such as latency,speedup,dtype,notes."),
    ] = None,
    csv: Annotated[bool, typer.Option("--csv", help="Of cases: print CSV.", callback=one_form)] = False,
    markdown: Annotated[
        bool, typer.Option("--markdown", help="Of cases: print Markdown.", callback=one_form)
    ] = False,
    json_: JsonOption = False,
    db: DatabaseOption = None,
    config: ConfigOption = None,
) -> int:
    """Workloads, strategies and suites to measure; runs, trials, builds, machines, regressions and
    annotations that are stored.

    trials shows the newest 50, with the ids that `compilewatch show` takes; --run, --workload and --json show
    all. cases has each case of each build with its figures over all its trials, columns by name or by preset:
    scenario, throughput, regional, strategies, variants, scaling. Of a fleet: its workers, and the launches
    that bring them.
    Example: compilewatch list cases --preset scenario
    """
    named = Filters(runs=only(run), workloads=tuple(workload or ()))
    of_cases = (strategy, machine, build, preset, columns, csv, markdown)
    _require_meaning(subject, narrowed=named != Filters(), of_cases=any(of_cases))
    settings = settings_of(config, db)
    if subject is Subject.CASES:
        form = Form(json=json_, csv=csv, markdown=markdown)
        door = Door.RUN if preset is None else Door(preset.value)
        wanted = wanted_columns(door, columns)
        with database_of(settings, migrate=False) as database:
            of = replace(
                named,
                machines=only(machine_named(database, machine)),
                builds=builds_named(build or (), database),
                strategies=tuple(strategy or ()),
            )
            found = read_rows(database, of, door)
        print_cases(found, door, wanted, form)
        return 0
    tallies: list[str] = []
    if subject is Subject.TRIALS:
        with database_of(settings, migrate=False) as database:
            require_stored(database, named)
            rows = rows_of(listed_trials(database, named))
    elif subject in _STORED:
        with database_of(settings, migrate=False) as database:
            rows = rows_of(_STORED[subject](database))
    elif subject is Subject.REGRESSIONS:
        with database_of(settings, migrate=False) as database:
            later = partial(with_later, database, policy=settings.policy)
            rows = rows_of(regressions_frame(database, later=later))
            tallies = tally_lines(each.regression for each in standing_regressions(database))
    else:
        rows = CATALOG[subject.value](settings)
    if json_:
        print_document({"schema": "compilewatch.list/1", "subject": subject.value, "rows": rows})
        return 0
    if not rows:
        where_from = _WHERE_FROM.get(subject, "Measure with `compilewatch run`.")
        typer.echo(f"No {subject.value} yet. {where_from}")
        return 0
    headings = _SHOWN.get(subject)
    if subject is Subject.TRIALS and named == Filters() and len(rows) > _NEWEST_TRIALS:
        tallies = [
            f"The newest {_NEWEST_TRIALS} of {plural(len(rows), 'trial')}; --run and --workload show all."
        ]
        rows = rows[:_NEWEST_TRIALS]
    if subject is Subject.REGRESSIONS:
        rows = [row | {"timing": timing_text(row["timing_method"], row["bound"])} for row in rows]
        if not any(row["timing"] for row in rows):
            headings = tuple(name for name in _SHOWN[subject] if name != "timing")
    console().print(_table(rows, headings))
    print_lines(tallies)
    if subject is Subject.REGRESSIONS:
        explained_rows = (row for row in rows if row["explanation"])
        why = (f"{row['workload']} / {row['strategy']}: {row['explanation']}" for row in explained_rows)
        print_lines(dict.fromkeys(why))
    return 0


def _require_meaning(subject: Subject, *, narrowed: bool, of_cases: bool) -> None:
    """Raises ConfigError for options that say nothing of this subject."""
    if narrowed and subject not in (Subject.TRIALS, Subject.CASES):
        raise ConfigError(
            f"--run and --workload choose trials, not {subject.value}.", "Write `compilewatch list trials`."
        )
    if of_cases and subject is not Subject.CASES:
        raise ConfigError(
            f"{subject.value} have no figures of cases, no presets and no other form than --json.",
            "Write `compilewatch list cases`.",
        )


def _table(rows: Sequence[dict[str, Any]], columns: Sequence[str] | None) -> Table:
    shown = {words(name.removesuffix("_at").removesuffix("_ns")): name for name in columns or rows[0]}
    cells = ([_text(name, row[name]) for name in shown.values()] for row in rows)
    optional = [heading for name in _MAY_GO for heading in shown if shown[heading] == name]
    return plain_table(shown, cells, optional=optional)


def _text(column: str, value: Any) -> str:
    if value is None:
        return MISSING
    if column.endswith("_at"):
        return moment(datetime.fromisoformat(value))
    if column.endswith("_ns"):
        return duration(value)
    if column == "change":
        return percent(value, signed=True)
    if column == "source" and value != SourceKind.MEASURED:
        return f"imported, {value}"
    return str(value)
