"""`compilewatch import`, `export` and `schema`: trial records in and out."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, BinaryIO, cast

import typer

from compilewatch.db.engine.session import Database
from compilewatch.db.errors import CompilewatchError, NotFoundError, printable
from compilewatch.db.interchange.exporting import ExportFormat, format_of
from compilewatch.db.interchange.exporting import export as export_trials
from compilewatch.db.interchange.files.opening import RUNS_FOLDER
from compilewatch.db.interchange.files.options import (
    ImportOptions,
    StatedDevice,
    StatedStrategy,
    meant_words,
    package_versions,
    past,
    rows_wanted,
    torch_version,
)
from compilewatch.db.interchange.importing import AUTO, FileReport, ImportReport, Writing, import_paths
from compilewatch.db.interchange.sources.csv_mapping import not_used
from compilewatch.db.metrics.trial_times import latencies_ns
from compilewatch.db.queries.named import machines_named, require_stored
from compilewatch.db.queries.selection import Filters
from compilewatch.db.queries.trials import any_trial
from compilewatch.db.records.trial import SourceKind, Status, Task, Trial
from compilewatch.db.units import count, duration, plural, ratio, words
from compilewatch.db.verdicts.sides import builds_named
from compilewatch.runner.cli import options as cli_options
from compilewatch.runner.cli.front import EXIT_CANNOT
from compilewatch.runner.cli.options import (
    BuildsOption,
    ConfigOption,
    DatabaseOption,
    JsonOption,
    StrategiesOption,
    WorkloadsOption,
    database_of,
    database_to_read,
    moment_of,
    name_database,
    settings_of,
)
from compilewatch.runner.output.documents import print_document
from compilewatch.runner.process.spool import TravellingSpool, import_runs

_UNSAID = "where the file has none."


def import_(
    paths: Annotated[
        list[Path],
        typer.Argument(metavar="PATH...", help="Files to read, or folders: all files in them."),
    ],
    format_: Annotated[str, typer.Option("--format", help="auto, or the name of a format.")] = AUTO,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Preview the first rows; store nothing.")
    ] = False,
    replace_: Annotated[
        bool, typer.Option("--replace", help="In place of what an import brought of the same runs and cases.")
    ] = False,
    remove: Annotated[
        bool, typer.Option("--remove", help="Take out what the same files brought with the same options.")
    ] = False,
    torch: Annotated[str | None, typer.Option(help=f"torch version, {_UNSAID}")] = None,
    cuda: Annotated[str | None, typer.Option(help=f"CUDA version, {_UNSAID}")] = None,
    driver: Annotated[str | None, typer.Option(help=f"Driver version, {_UNSAID}")] = None,
    python: Annotated[str | None, typer.Option(help=f"Python version, {_UNSAID}")] = None,
    package: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VERSION", help="A library, such as transformers=4.57.1. Repeatable."),
    ] = None,
    device: Annotated[StatedDevice | None, typer.Option(help=f"Kind of device, {_UNSAID}")] = None,
    device_name: Annotated[str | None, typer.Option(help=f"GPU or CPU model, {_UNSAID}")] = None,
    machine: Annotated[str | None, typer.Option(help="A name for the machine.")] = None,
    dtype: Annotated[str | None, typer.Option(help=f"Data type, {_UNSAID}")] = None,
    batch_size: Annotated[int | None, typer.Option(min=1, help=f"Batch size, {_UNSAID}")] = None,
    task: Annotated[Task | None, typer.Option(help=f"Task, {_UNSAID}")] = None,
    strategy: Annotated[
        StatedStrategy | None, typer.Option(help=f"Eager, or a mode of torch.compile, {_UNSAID}")
    ] = None,
    measured_at: Annotated[
        str | None, typer.Option(metavar="TIME", help=f"Moment of the measurement, {_UNSAID}")
    ] = None,
    pair_key: Annotated[
        str | None, typer.Option(help="pytest-benchmark: the parameter that names the strategy.")
    ] = None,
    column: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FIELD=COLUMN", help="csv: a column's meaning, such as latency_ms=time. Repeatable."
        ),
    ] = None,
    where: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN=VALUE", help="csv: only rows with that, such as metric_name=speed. Repeatable."
        ),
    ] = None,
    map_: Annotated[
        list[str] | None,
        typer.Option(
            "--map", metavar="WORD=STRATEGY", help="What a word of the file for a strategy means. Repeatable."
        ),
    ] = None,
    workload: Annotated[
        str | None, typer.Option(help="csv, and servers: the workload, or model, of all.")
    ] = None,
    latency: Annotated[
        str | None,
        typer.Option(metavar="METRIC", help="The file's metric that is the latency; METRIC=ms adds a unit."),
    ] = None,
    suite: Annotated[str | None, typer.Option(help="A suite name for the imported trials.")] = None,
    job: Annotated[str | None, typer.Option(help="torch-trace: the job; default: its folder.")] = None,
    label: Annotated[
        str | None, typer.Option(help="A name that makes the results a run of their own, to compare by.")
    ] = None,
    json_: JsonOption = False,
    db: DatabaseOption = None,
    config: ConfigOption = None,
) -> int:
    """Read trial records or another tool's results. Example: compilewatch import history.jsonl

    Each file comes in whole or not at all; a second import adds nothing. Exits 2 when a file cannot be read.
    """
    if replace_ and remove:
        raise typer.BadParameter("Name one of --replace and --remove.")
    writing = Writing.REPLACE if replace_ else Writing.REMOVE if remove else Writing.ADD
    settings = settings_of(config, db)
    moment = moment_of("--measured-at", measured_at)
    options = ImportOptions(
        task=task,
        strategy=strategy,
        measured_at=past(moment) if moment else None,
        pair_key=pair_key,
        workload=workload,
        latency=latency,
        columns=_columns(column),
        where=rows_wanted(where or ()),
        usual_columns=settings.csv_columns,
        words=meant_words(map_ or ()),
        torch=torch_version(torch) if torch is not None else None,
        cuda=cuda,
        driver=driver,
        python=python,
        packages=package_versions(package or ()),
        device=device.value if device else None,
        device_name=device_name,
        machine=machine,
        dtype=dtype,
        batch_size=batch_size,
        suite=suite,
        job=job,
        label=label,
    )
    _require_files(paths)
    with database_to_read(settings) if dry_run else database_of(settings, changes=False) as database:
        report = import_paths(
            database, paths, format=format_, options=options, dry_run=dry_run, writing=writing
        )
        read = (*paths, *(Path(file.path) for file in report.files))
        for path in () if dry_run or remove else dict.fromkeys(read):
            if (path / RUNS_FOLDER).is_dir():
                import_runs(TravellingSpool(path), database)
        if not dry_run and any(file.new for file in report.files):
            name_database(database)
    return _print(report, writing, as_json=json_)


def export(
    format_: Annotated[
        str | None,
        typer.Option("--format", help="The format to write; default: by the file's suffix, else jsonl."),
    ] = None,
    output: Annotated[Path | None, typer.Option(help="File to write; default: standard output.")] = None,
    workload: WorkloadsOption = None,
    strategy: StrategiesOption = None,
    machine: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help="A machine by name or id. Repeatable.", autocompletion=cli_options.machines
        ),
    ] = None,
    build: BuildsOption = None,
    suite: Annotated[list[str] | None, typer.Option(metavar="S", help="A suite by name. Repeatable.")] = None,
    run: Annotated[list[str] | None, typer.Option(metavar="ID", help="A run's id. Repeatable.")] = None,
    task: Annotated[list[Task] | None, typer.Option(help="A task by name. Repeatable.")] = None,
    status: Annotated[list[Status] | None, typer.Option(help="ok or failed.")] = None,
    source: Annotated[
        list[SourceKind] | None, typer.Option(help="Measured here, or imported. Repeatable.")
    ] = None,
    since: Annotated[
        str | None, typer.Option(metavar="TIME", help="From this time (RFC 3339, UTC) on.")
    ] = None,
    until: Annotated[
        str | None, typer.Option(metavar="TIME", help="Up to this time (RFC 3339, UTC).")
    ] = None,
    db: DatabaseOption = None,
    config: ConfigOption = None,
) -> int:
    """Write stored trials; jsonl re-imports without loss.

    Example: compilewatch export --output history.jsonl
    """
    filters = Filters(
        workloads=tuple(workload or ()),
        strategies=tuple(strategy or ()),
        suites=tuple(suite or ()),
        runs=tuple(run or ()),
        tasks=tuple(task or ()),
        statuses=tuple(status or ()),
        sources=tuple(source or ()),
        since=moment_of("--since", since),
        until=moment_of("--until", until),
    )
    chosen = format_of(output, format_)
    with database_of(settings_of(config, db), migrate=False) as database:
        machines = machines_named(database, machine or ())
        filters = replace(filters, machines=machines, builds=builds_named(build or (), database))
        require_stored(database, filters)
        _require_some(database, filters, output)
        notes: list[str] = []
        place = output or _standard_output(chosen)
        written = export_trials(database, filters, format=chosen, output=place, notes=notes)
    for note in notes:
        print(printable(note), file=sys.stderr)
    if output is not None:
        print(f"Wrote {plural(written, 'trial')} to {output}.", file=sys.stderr)
    return 0


def _standard_output(format_: str) -> BinaryIO:
    """Where an export without a file goes: to a pipe as it is, to a terminal without what would drive it."""
    if not sys.stdout.isatty():
        return sys.stdout.buffer
    if format_ == ExportFormat.PARQUET:
        raise CompilewatchError("Parquet is no text for a terminal.", "Name a file with --output.")
    return cast(BinaryIO, _Terminal())


class _Terminal:
    """Takes bytes of UTF-8 and prints what a terminal does not obey."""

    def write(self, data: bytes) -> int:
        sys.stdout.write(printable(data.decode(errors="replace")))
        return len(data)

    def flush(self) -> None:
        sys.stdout.flush()


def schema() -> int:
    """Print the JSON Schema of the trial record. Example: compilewatch schema > trial.schema.json"""
    dialect = "https://json-schema.org/draft/2020-12/schema"
    print_document({"$schema": dialect, **Trial.model_json_schema(by_alias=True)})
    return 0


def _require_some(database: Database, filters: Filters, output: Path | None) -> None:
    """Before anything is written: a file of an earlier export is not replaced by an empty one."""
    if any_trial(database, filters):
        return
    unwritten = "" if output is None else f"; {output} was not written"
    raise CompilewatchError(
        f"No stored trial fits these filters{unwritten}.",
        "Leave out one of them, or see `compilewatch list runs`.",
    )


def _require_files(paths: Sequence[Path]) -> None:
    for path in paths:
        if not path.exists():
            raise NotFoundError(f"There is no file {path}.", "Check the path; nothing was imported.")
    for path in paths:
        # Of another process, such as the one that reads, these are other files.
        redirected = path.absolute().is_relative_to("/dev") or path.absolute().is_relative_to("/proc")
        if redirected or not (path.is_file() or path.is_dir()):
            raise CompilewatchError(
                f"{path} is a pipe or a device, which cannot be read twice; nothing was imported.",
                "Write its content to a file and import that.",
            )


def _columns(options: list[str] | None) -> dict[str, str]:
    """From what was typed: field -> column."""
    columns: dict[str, str] = {}
    for text in options or []:
        field, equals, column = text.partition("=")
        field, column = field.strip(), column.strip()
        if not (field and equals and column):
            raise CompilewatchError(
                f"--column {text} has no field or no column.", "Write it as --column latency_ms=time."
            )
        if field in columns:
            raise CompilewatchError(
                f"--column names twice what {field} is: {columns[field]} and {column}.", "Name one of them."
            )
        columns[field] = column
    return columns


def _print(report: ImportReport, writing: Writing, *, as_json: bool) -> int:
    """What came in, and on standard error each file that could not be read: then 2, else 0.

    Columns that are not used are said there too, of a dry run beside what would come in.
    """
    if as_json:
        print_document(report.as_json())
    else:
        _print_files(report, writing)
    for file in report.files:
        if file.unused and (file.error or as_json or not report.dry_run):
            print(printable(f"{file.path}: {_unused(file)}"), file=sys.stderr)
        for note in file.notes:
            print(printable(note), file=sys.stderr)
    for error in report.errors:
        print(printable(f"compilewatch: {error.message}\n  {error.next_step}"), file=sys.stderr)
    return EXIT_CANNOT if report.errors else 0


def _print_files(report: ImportReport, writing: Writing) -> None:
    verb = "would bring" if report.dry_run else "brought"
    takes = "would take out" if report.dry_run else "took out"
    for file in report.files:
        if file.error is not None or not file.formats:
            continue
        known = f", {count(file.known)} known already" if file.known else ""
        replaced = f" in place of {count(file.removed)}" if file.removed else ""
        failed = f", {count(file.failed_trials)} failed" if file.failed_trials and not file.known else ""
        outcome = f"{verb} {plural(file.new, 'trial')}{failed}{replaced}{known}"
        if writing is Writing.REMOVE:
            nothing = "" if file.removed else ": with these options it brought none that is stored"
            outcome = f"{takes} {plural(file.removed, 'trial')}{nothing}"
        typer.echo(printable(f"{file.path} ({', '.join(file.formats)}) {outcome}."))
        if report.dry_run:
            _print_first(file)
            if file.unused:
                typer.echo(printable(f"  {_unused(file)}"))


def _unused(file: FileReport) -> str:
    return f"{not_used(file.unused)} Name what they mean with --column FIELD=COLUMN."


def _print_first(file: FileReport) -> None:
    for trial in file.first:
        latency, control = latencies_ns(trial)
        result = words(trial.failure.kind.value) if trial.failure else duration(latency)
        if trial.numerics and not trial.failure and latency is None:
            result = words(trial.numerics.status.value)
        if control is not None and latency:
            result += f", speedup {ratio(control / latency)}"
        batch = f", batch {trial.workload.batch_size}" if trial.workload.batch_size else ""
        text = (
            f"  {trial.workload.name} / {trial.strategy.name} on {trial.machine.device_name}, "
            f"torch {trial.build.torch}, {trial.workload.dtype}{batch}: {result}"
        )
        typer.echo(printable(text))
