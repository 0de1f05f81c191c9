"""Result files that somebody uploads: what would come in, what is still missing, and the import."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import pandas as pd

from compilewatch.dashboard.login.access import Role, require
from compilewatch.dashboard.read.versions import REFRESH_THROTTLE
from compilewatch.db.engine.session import open_database
from compilewatch.db.errors import CompilewatchError
from compilewatch.db.interchange.files.foreign_trials import MissingFactError
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
from compilewatch.db.interchange.importing import AUTO, ImportReport, Writing, import_uploads
from compilewatch.db.interchange.sources.csv_mapping import UnmappedError, not_used
from compilewatch.db.records.sample_blobs import percentile_ns
from compilewatch.db.records.trial import Task, Trial
from compilewatch.db.units import count, plural

LARGEST_MB = 16
MOST_FILES = 20
LONGEST_ANSWER = 200
_MOST_NOTES = 20
# Of a CSV whose columns are asked about one by one.
MOST_COLUMNS = 60
# What is asked of a person, by field of ImportOptions: a question and what an answer looks like.
QUESTIONS: dict[str, tuple[str, str]] = {
    "torch": ("torch version", "2.13.0+cu130"),
    "device_name": ("GPU, or CPU where it ran on one", "NVIDIA H200"),
    "device": ("Kind of device", ", ".join(StatedDevice)),
    "measured_at": ("Measured when (UTC)", "2026-11-20 18:00"),
    "dtype": ("Data type", "bfloat16"),
    "task": ("Task", ", ".join(Task)),
    "strategy": ("Strategy", ", ".join(StatedStrategy)),
    "machine": ("Name of the machine", "gpu-box-3"),
    "label": ("Name of the run", "nightly with our patch"),
    "workload": ("Workload of a CSV, or model of a server", "llama-8b"),
    "latency": ("Metric of the file that is the latency", "avg_inference_latency(ms)"),
    "where": ("Only rows of a CSV with", "metric_name=speed, pass=forward"),
    "words": ("What a word for a strategy means", "our fast path=default"),
    "packages": ("Versions of libraries", "transformers=4.57.1, timm=1.0.20"),
    "batch_size": ("Batch size", "8"),
    "cuda": ("CUDA version", "13.0"),
    "driver": ("Driver version", "580.65"),
    "python": ("Python version", "3.12"),
    "suite": ("Suite", "nightly"),
    "job": ("Job that logs are of", "ranker-train"),
    "pair_key": ("Parameter of pytest-benchmark that tells eager from compiled", "mode"),
}
# Asked of every file: no format says them, and a name helps to find the results again.
ALWAYS = ("machine", "label")
# What is to become of the results, by what it is called.
WRITINGS = {
    Writing.ADD: "Add what is new",
    Writing.REPLACE: "Replace what was imported of the same runs and cases",
    Writing.REMOVE: "Take out what the same files brought",
}
# What a file may lack and still come in.
MORE = (
    *(
        "workload",
        "latency",
        "where",
        "words",
        "packages",
        "batch_size",
        "cuda",
        "driver",
        "python",
        "suite",
        "job",
    ),
    "pair_key",
)


@dataclass(frozen=True)
class Upload:
    """Files as uploaded, and what is known about them; `facts` are by field of ImportOptions, as typed.

    `meanings` are the fields that columns of a CSV mean, by column, `writing` what becomes of the results.
    """

    files: Mapping[str, bytes]
    format: str
    facts: Mapping[str, str]
    meanings: Mapping[str, str] = field(default_factory=dict)
    writing: Writing = Writing.ADD


@dataclass(frozen=True)
class Preview:
    """What an upload would bring, and take out: `rows` are the first trials, `missing` the questions to ask.

    `unmapped` are the columns of which it must be said what they mean, `unused` those that bring nothing and
    of which it may be said; each with its first cell. `problems` are sentences; a file with one brings
    nothing, the others come in.
    """

    upload: Upload
    rows: pd.DataFrame
    new: int
    known: int
    removed: int
    problems: tuple[str, ...]
    missing: tuple[str, ...]
    unmapped: Mapping[str, str]
    unused: Mapping[str, str]
    notes: tuple[str, ...] = ()
    """What was left out of the files, a sentence each."""

    @property
    def left_out(self) -> str:
        """Which columns are not used; empty where all are."""
        if not self.unused:
            return ""
        step = "Say above what they mean" if self.asks_of_unused else "Name them as fields in the file"
        return f"{not_used(self.unused)} {step}, or leave them out."

    @property
    def asks_of_unused(self) -> bool:
        """Whether they are few enough to be asked about one by one."""
        return len(self.unused) <= MOST_COLUMNS

    @property
    def changes_nothing(self) -> bool:
        return not (self.new or self.removed)

    @property
    def sentence(self) -> str:
        """How many trials are new, how many known and how many would go."""
        if self.upload.writing is Writing.REMOVE:
            return f"Would take out {plural(self.removed, 'trial')}"
        replaced = f" in place of {count(self.removed)}" if self.removed else ""
        known = f", {plural(self.known, 'trial')} known already" if self.known else ""
        return f"Would bring in {plural(self.new, 'new trial')}{replaced}{known}"


def files_of(uploaded: Sequence[tuple[str, bytes]]) -> dict[str, bytes]:
    """The files by base name. Raises CompilewatchError where they are too many or too large, and where two of
    one name differ, which would be each other's partner or none.
    """
    if len(uploaded) > MOST_FILES:
        raise CompilewatchError(
            f"{plural(len(uploaded), 'file')} at once, and the limit is {MOST_FILES}.",
            "Pack them into one zip.",
        )
    if sum(len(data) for _, data in uploaded) > LARGEST_MB * 2**20:
        raise CompilewatchError(
            f"These files have more than {LARGEST_MB} MiB together.",
            "Compress them, or use `compilewatch import` on the server.",
        )
    files: dict[str, bytes] = {}
    for path, data in uploaded:
        name = path.replace("\\", "/").rpartition("/")[2] or "upload"
        if files.setdefault(name, data) != data:
            raise CompilewatchError(
                f"Two files are called {name} and differ.",
                "Import them one after the other, or pack their folders into one zip.",
            )
    return files


def preview(url: str, upload: Upload) -> Preview:
    """What `bring_in` would store; nothing is. Raises CompilewatchError for a wrong fact."""
    report = _import(url, upload, dry_run=True)
    missing: dict[str, None] = {}
    unmapped: dict[str, str] = {}
    problems = []
    for error in report.errors:
        if isinstance(error, MissingFactError):
            missing |= dict.fromkeys(error.fields)
        elif not isinstance(error, UnmappedError):
            missing |= dict.fromkeys(name for name in _named(error.next_step or "") if name in QUESTIONS)
        if isinstance(error, UnmappedError) and len(error.columns) <= MOST_COLUMNS:
            unmapped |= error.columns
        problems.append(_problem(error))
    rows = [_row(file.path, trial) for file in report.files for trial in file.first]
    frame = pd.DataFrame(rows)
    unused = {column: cell for file in report.files for column, cell in file.unused.items()}
    return Preview(
        upload,
        frame,
        report.new,
        report.known,
        report.removed,
        tuple(problems),
        tuple(missing),
        unmapped,
        unused,
        tuple(_for_a_page(note) for file in report.files for note in file.notes)[:_MOST_NOTES],
    )


def bring_in(url: str, upload: Upload) -> tuple[str, bool]:
    """Store the upload: a sentence on what came of it, and whether every file came in."""
    try:
        require(Role.EDITOR)
        report = _import(url, upload, dry_run=False)
    except CompilewatchError as error:
        return str(error), False
    REFRESH_THROTTLE.catch_up()
    known = f" {plural(report.known, 'trial')} were known already." if report.known else ""
    replaced = f" in place of {count(report.removed)}" if report.removed else ""
    done = f"Brought in {plural(report.new, 'new trial')}{replaced}.{known}"
    if upload.writing is Writing.REMOVE:
        done = f"Took out {plural(report.removed, 'trial')}."
    problems = list(map(_problem, report.errors))
    return " ".join([done, *problems]), not problems


def _import(url: str, upload: Upload, *, dry_run: bool) -> ImportReport:
    options = replace(options_of(upload.facts), meanings=_meanings_of(upload.meanings))
    with open_database(url) as database:
        return import_uploads(
            database,
            upload.files,
            format=upload.format or AUTO,
            options=options,
            dry_run=dry_run,
            writing=upload.writing,
        )


_PAIRS = {"packages": package_versions, "where": rows_wanted, "words": meant_words}


def options_of(facts: Mapping[str, str]) -> ImportOptions:
    """From what was typed. Raises CompilewatchError for what is no moment of the past, and for what is no
    version of torch or of libraries, batch size, kind of device, task or strategy, and no NAME=VALUE.
    """
    answers: dict[str, Any] = {name: " ".join(text.split()) for name, text in facts.items() if text.strip()}
    for name, text in answers.items():
        if len(text) > LONGEST_ANSWER:
            raise CompilewatchError(f"{QUESTIONS[name][0]}: is longer than {LONGEST_ANSWER} characters.")
    if "measured_at" in answers:
        answers["measured_at"] = _moment(answers["measured_at"])
    for name, words in (("device", StatedDevice), ("task", Task), ("strategy", StatedStrategy)):
        if name in answers:
            if answers[name] not in list(words):
                raise CompilewatchError(
                    f"There is no {name} {answers[name]}.", f"Name one of {', '.join(words)}."
                )
            answers[name] = words(answers[name])
    for name, pairs in _PAIRS.items():
        if name in answers:
            answers[name] = pairs(answers[name].split(","))
    if "batch_size" in answers:
        answers["batch_size"] = _batch_size(answers["batch_size"])
    if "torch" in answers:
        answers["torch"] = torch_version(answers["torch"])
    if "device" in answers:
        answers["device"] = answers["device"].value
    return ImportOptions(**answers)


def _meanings_of(meanings: Mapping[str, str]) -> dict[str, str]:
    """What each column means, as chosen. Raises CompilewatchError for a field that two mean."""
    columns: dict[str, str] = {}
    for column, name in meanings.items():
        if name in columns:
            raise CompilewatchError(
                f"Two columns mean {name}: {columns[name]} and {column}.", "Choose one of them."
            )
        if name:
            columns[name] = column
    return dict(meanings)


def _batch_size(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and 0 < int(text) < 2**31):
        raise CompilewatchError(f"{text} is no batch size.", "Write a whole number above 0.")
    return int(text)


def _moment(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise CompilewatchError(f"{text} is no date and time.", "Write it as 2026-11-20 18:00.") from None
    return past((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC))


# Options by the field of ImportOptions that they fill, where it has another name.
_FIELDS = {"package": "packages", "map": "words"}
_OPTION = re.compile(r"(`[^`]*`)|--([a-z]+(?:-[a-z]+)*)")


def _named(step: str) -> Iterator[str]:
    """The fields that the options in a next step fill."""
    for match in _OPTION.finditer(step):
        if match[2]:
            yield _FIELDS.get(match[2], match[2].replace("-", "_"))


def _for_a_page(step: str) -> str:
    """A next step in the words of the form, which has a field for an option; commands stay as they are."""

    def field_of(match: re.Match[str]) -> str:
        name = next(_named(match[0]), "")
        labels = {"column": "What the columns mean", "format": "Format", "replace": WRITINGS[Writing.REPLACE]}
        label = QUESTIONS[name][0] if name in QUESTIONS else labels.get(name)
        return (
            match[0]
            if label is None
            else f"\N{LEFT DOUBLE QUOTATION MARK}{label}\N{RIGHT DOUBLE QUOTATION MARK}"
        )

    return _OPTION.sub(field_of, step)


def _problem(error: CompilewatchError) -> str:
    """An error with the next step for a page, which has fields instead of options."""
    step = _for_a_page(error.next_step or "")
    if isinstance(error, UnmappedError):
        step = "Say above what its columns mean, and look again."
        if len(error.columns) > MOST_COLUMNS:
            step = f"Leave at most {MOST_COLUMNS} columns in it, or name some workload and latency_ms."
    elif isinstance(error, MissingFactError):
        step = "Answer above and look again."
    return f"{error.message} {step}".strip()


def _row(file: str, trial: Trial) -> dict[str, Any]:
    latency_ns = percentile_ns(sorted(trial.latency_samples_ns), 0.5)
    if latency_ns is None and trial.summary is not None:
        latency_ns = trial.summary.latency_ns
    return {
        "file": file,
        "workload": trial.workload.name,
        "strategy": trial.strategy.name,
        "status": trial.status.value,
        "latency_ms": None if latency_ns is None else latency_ns / 1e6,
        "device_name": trial.machine.device_name,
        "torch": trial.build.torch,
        "batch_size": trial.workload.batch_size,
        "dtype": trial.workload.dtype,
        "source": trial.source.name,
        "started_at": trial.started_at,
    }
