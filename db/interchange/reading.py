"""What foreign files hold: every trial of what one path names, without a database.

Run as a process of its own it reads files that nobody vouches for: with limits of memory and CPU time, no
secret, no database and no network. It writes trials as lines of JSON, which whoever started it checks again.

Equal results of one file, which are repeats and not one result: told apart by how many came before.
"""

from __future__ import annotations

import json
import os
import resource
import sqlite3
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

from pydantic import TypeAdapter

from compilewatch.db.errors import CompilewatchError, RecordError, one_line
from compilewatch.db.interchange.files.foreign_trials import MissingFactError, metric_named
from compilewatch.db.interchange.files.opening import MAX_LINE_BYTES, InputFile, input_files, uploaded_files
from compilewatch.db.interchange.files.options import ImportOptions
from compilewatch.db.interchange.formats import JOB_READERS, READERS, Format, made_trials, recognised_files
from compilewatch.db.interchange.sources.csv_mapping import UnmappedError
from compilewatch.db.interchange.sources.generic_csv import unused_columns
from compilewatch.db.interchange.sources.job_trials import JobProcess, job_trials
from compilewatch.db.records.ids import identity
from compilewatch.db.records.trial import Trial

# Beyond this SQLite keeps what it counts in a temporary file, so that memory does not grow with the file.
_CACHE_KIB = 65_536
_COUNT = (
    "INSERT INTO seen (trial_id, times) VALUES (?, 1) "
    "ON CONFLICT (trial_id) DO UPDATE SET times = times + 1 RETURNING times"
)


def with_distinct_ids(trials: Iterable[Trial]) -> Iterator[Trial]:
    """The trials of one file, or of one job, whose ids follow from content, each with an id of its own.

    The first of equal ones keeps its id; that of a later one says how many came before it, so that the same
    file gives the same ids again.
    """
    table = "CREATE TABLE seen (trial_id TEXT PRIMARY KEY, times INTEGER) WITHOUT ROWID"
    with counting(), closing(temporary_table(table)) as connection:
        for trial in trials:
            ((times,),) = connection.execute(_COUNT, (trial.trial_id,)).fetchall()
            yield trial if times == 1 else _repeat(trial, times - 1)


def temporary_table(statement: str) -> sqlite3.Connection:
    """A table that `statement` creates, on the disk where memory does not suffice. Who asks closes it."""
    connection = sqlite3.connect("", isolation_level=None, check_same_thread=False)
    connection.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
    connection.execute("PRAGMA journal_mode = OFF")
    connection.execute(statement)
    connection.execute("BEGIN")
    return connection


@contextmanager
def counting() -> Iterator[None]:
    """Raises CompilewatchError where a table that counts has no room."""
    try:
        yield
    except sqlite3.Error as error:
        raise CompilewatchError(
            f"The results of the file cannot be counted ({error}).",
            "Make room in the folder of temporary files.",
        ) from error


def _repeat(trial: Trial, before: int) -> Trial:
    content = {"trial": trial.trial_id, "equal_ones_before": before}
    trial_id = "imp-" + identity(content) + identity({"again": content})
    return trial.model_copy(update={"trial_id": trial_id})


_MOST_NAMED = 100
Recognised = list[tuple[InputFile, Format]]


def all_trials(recognised: Recognised, options: ImportOptions) -> Iterator[Trial]:
    """Those of every file, then those of jobs, whose files are read together.

    Raises RecordError naming file, line and field, after which nothing that was yielded counts.
    """
    for each in recognised:
        _say_what_is_not_used(*each, options)
    others = [each for each in recognised if each[1] not in JOB_READERS]
    of_jobs = [each for each in recognised if each[1] in JOB_READERS]
    of_files = chain.from_iterable(_trials(*each, options) for each in others)
    of_processes = with_distinct_ids(job_trials(list(_processes(of_jobs, options)), options))
    yield from _with_named_latency(chain(of_files, of_processes), recognised, options)


def _with_named_latency(
    trials: Iterator[Trial], recognised: Recognised, options: ImportOptions
) -> Iterator[Trial]:
    """The same trials. Raises RecordError where none of them states the metric that is to be the latency."""
    name = None if options.latency is None else metric_named(options.latency)[0]
    stated: dict[str, None] = {}
    for trial in trials:
        stated |= dict.fromkeys(trial.summary.metrics if trial.summary and len(stated) < _MOST_NAMED else ())
        if trial.summary and name in trial.summary.metrics:
            name = None
        yield trial
    if name is not None and recognised:
        raise RecordError(
            f"{recognised[0][0].shown}: no result states {one_line(name)}.",
            f"Named are {one_line(', '.join(stated), 300)}." if stated else "It names no metric of its own.",
        )


def unused(recognised: Recognised, options: ImportOptions) -> dict[str, str]:
    """The columns of CSV files that are no field, each with its first cell."""
    columns: dict[str, str] = {}
    for file, name in recognised:
        if name == Format.CSV:
            with suppress(RecordError):
                columns |= unused_columns(file, options)
    return columns


def _processes(recognised: Recognised, options: ImportOptions) -> Iterator[JobProcess]:
    """What each file of a job tells; a file beside others in which nothing was compiled is passed over."""
    for file, name in recognised:
        process = JOB_READERS[name](file, options)
        if not (process.log.compiled or process.cold_start):
            begun = process.log.began_ns is not None
            problem = "ends before anything was compiled to its end" if begun else "holds no compilation"
            if len(recognised) == 1:
                raise RecordError(f"{file.shown}: {problem}.", "Check that it is the file you meant.")
            if begun:
                options.note(f"{file.shown}: {problem}; passed over.")
            continue
        if process.log.phases.unfinished and not process.steps:
            options.note(f"{file.shown}: ends while it compiles, so it has no compile cost.")
        if process.cut_off:
            options.note(f"{file.shown}: ends inside a record, which was left out.")
        yield process


_OF_SOME = {
    "--column": (Format.CSV,),
    "--where": (Format.CSV,),
    "--workload": (
        *(Format.CSV, Format.VLLM_BENCH, Format.SGLANG),
        *(Format.GENAI_PERF, Format.TRTLLM_BENCH, Format.TRTEXEC),
    ),
    "--pair-key": (Format.PYTEST_BENCHMARK,),
    "--job": (*JOB_READERS, Format.VLLM_STARTUP),
}
"""Options that mean something in these formats alone."""


def _say_what_is_not_used(file: InputFile, name: Format, options: ImportOptions) -> None:
    if name is Format.TRIAL:
        options.none_used(file.shown)
        return
    for each in options.told():
        if name not in _OF_SOME.get(each, (name,)):
            options.note(f"{file.shown}: is {name}, for which {each} is not used.")


def _trials(file: InputFile, name: Format, options: ImportOptions) -> Iterator[Trial]:
    options = replace(options, folder_date=file.folder_date)
    try:
        trials = made_trials(READERS[name](file, options), name.value, options)
        yield from trials if name is Format.TRIAL else with_distinct_ids(trials)
    except RecursionError as error:
        # What json can read it may not be able to write again: each stops at a depth of its own.
        raise RecordError(
            f"{file.shown}: is nested too deeply.", "Check that it is the file you meant."
        ) from error


OPTIONS = TypeAdapter(ImportOptions)
_NICENESS = 5
_WIDE = 1024


def main() -> None:
    """Answer requests until there is none."""
    os.nice(_NICENESS)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    requests, answers = sys.stdin.buffer, sys.stdout.buffer
    while line := requests.readline():
        request = json.loads(line)
        limit = request["memory_bytes"]
        resource.setrlimit(resource.RLIMIT_AS, (limit, resource.getrlimit(resource.RLIMIT_AS)[1]))
        for answer in _answers(request, requests):
            answers.write(answer + b"\n")
        answers.flush()


def _answers(request: dict[str, Any], stream: BinaryIO) -> Iterator[bytes]:
    options: ImportOptions = OPTIONS.validate_python(request["options"])
    uploads = {name: stream.read(size) for name, size in request["uploads"]}
    path = request["path"]
    below = None if request["below"] is None else Path(request["below"])
    files = partial(uploaded_files, path, uploads) if uploads else partial(input_files, Path(path), below)
    recognised: Recognised = []
    more_time = partial(_more_time, request["cpu_s"])
    more_time()
    try:
        recognised += recognised_files(files, request["format"], options.notes, below is not None)
        yield _event("formats", list(dict.fromkeys(str(name) for _, name in recognised)))
        yield from _encoded(recognised, options, more_time)
        yield _event("end", {"unused": unused(recognised, options), "notes": options.notes})
    except CompilewatchError as error:
        yield _event("error", _refusal_event(error, recognised, options))
    except MemoryError:
        recognised.clear()
        options.notes.clear()
        yield _event("memory", None)
    except Exception as error:  # noqa: BLE001 - a reader's defect is one sentence, and other files come in
        why = one_line(f"{type(error).__name__}: {error}")
        refusal = RecordError(f"{one_line(path)}: cannot be read ({why}).", "Check that the file is whole.")
        yield _event("error", _refusal_event(refusal, [], options))


def _encoded(
    recognised: Recognised, options: ImportOptions, more_time: Callable[[], None]
) -> Iterator[bytes]:
    place: tuple[str, str] | None = None
    for number, trial in enumerate(all_trials(recognised, options)):
        file = options.undated.get(trial.run_id)
        if file is not None and place != (trial.run_id, file):
            place = trial.run_id, file
            yield _event("undated", place)
        record = trial.to_json().encode()
        if len(record) > MAX_LINE_BYTES:
            raise RecordError(
                f"{recognised[0][0].shown}: a result has more than {MAX_LINE_BYTES // 2**20} MiB.",
                "Keep fewer samples of it.",
            )
        if number % _WIDE == 0:
            more_time()
        yield record


def _more_time(seconds: int) -> None:
    """As many seconds of processor time again from now on."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    limit = int(used.ru_utime + used.ru_stime) + seconds
    resource.setrlimit(resource.RLIMIT_CPU, (limit, resource.getrlimit(resource.RLIMIT_CPU)[1]))


def _refusal_event(
    error: CompilewatchError, recognised: Recognised, options: ImportOptions
) -> dict[str, Any]:
    answer: dict[str, Any] = {
        "kind": type(error).__name__,
        "message": error.message,
        "next_step": error.next_step,
        "notes": options.notes,
    }
    if isinstance(error, MissingFactError):
        # What is missing may stand in a column that nobody has named.
        answer |= {"fields": list(error.fields), "unused": unused(recognised, options)}
    if isinstance(error, UnmappedError):
        answer |= {"columns": dict(error.columns)}
    return answer


def _event(name: str, content: object) -> bytes:
    return json.dumps({"event": name, "content": content}).encode()


if __name__ == "__main__":
    main()
