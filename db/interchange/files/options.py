"""What a foreign file does not say and the user must tell."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from compilewatch.db.errors import ConfigError, one_line
from compilewatch.db.records.trial import Task

# The date of today is that of tomorrow where the sun rises first.
_AHEAD = timedelta(days=1)
_TORCH = re.compile(r"\d+\.\d+")
MOST_NOTES = 100
"""Of one path: what a reader says of every row would drown what matters."""


_NO_OPTIONS = frozenset({"usual_columns", "meanings", "notes", "folder_date", "undated"})
_SINGULAR = {"columns": "column", "packages": "package", "words": "map"}


class StatedDevice(StrEnum):
    """What a user can say it was executed on, as records and the names of torch's devices have it."""

    CUDA = "cuda"
    HIP = "hip"
    XPU = "xpu"
    CPU = "cpu"


class StatedStrategy(StrEnum):
    """How a workload was executed, as a user can tell it: eager, or a mode of `torch.compile`."""

    EAGER = "eager"
    DEFAULT = "default"
    REDUCE_OVERHEAD = "reduce-overhead"
    MAX_AUTOTUNE = "max-autotune"
    MAX_AUTOTUNE_NO_CUDAGRAPHS = "max-autotune-no-cudagraphs"


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """Facts told by the user. They fill what neither the file's content nor its name says.

    `measured_at` must be aware.
    `columns` maps our field names to the columns of a generic CSV, all of which it must have; it outranks
    `usual_columns`, those of the configuration. `meanings` are fields by column, empty for a column that is
    none, for files that have it.
    `job` names the job that logs are of, else their folder does.
    `packages` are versions of libraries by name. `pair_key` names the pytest-benchmark parameter that tells
    eager from compiled. `workload` names that of a
    CSV without such a column. `words` says which strategy a file
    means by a word. `latency` names the metric that is the latency, as NAME or NAME=UNIT.
    `where` chooses rows of a CSV, by what a column of it holds.
    `notes` collects what was left out while one path is read; `undated` the runs whose moment their file does
    not say, each with the file that is read. `folder_date` is the date by which it or its folder is called.
    """

    torch: str | None = None
    cuda: str | None = None
    driver: str | None = None
    python: str | None = None
    device: str | None = None
    device_name: str | None = None
    machine: str | None = None
    measured_at: datetime | None = None
    dtype: str | None = None
    task: Task | None = None
    strategy: StatedStrategy | None = None
    batch_size: int | None = None
    suite: str | None = None
    label: str | None = None
    job: str | None = None
    columns: Mapping[str, str] = field(default_factory=dict)
    usual_columns: Mapping[str, str] = field(default_factory=dict)
    meanings: Mapping[str, str] = field(default_factory=dict)
    packages: Mapping[str, str] = field(default_factory=dict)
    pair_key: str | None = None
    workload: str | None = None
    words: Mapping[str, str] = field(default_factory=dict)
    latency: str | None = None
    folder_date: datetime | None = None
    undated: dict[str, str] = field(default_factory=dict, compare=False)
    where: Mapping[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list, compare=False)

    def note(self, sentence: str) -> None:
        """Say once what was left out, of at most `MOST_NOTES`."""
        if sentence not in self.notes and len(self.notes) < MOST_NOTES:
            self.notes.append(sentence)

    def not_used(self, file: str, says: str, option: str) -> None:
        """Say that the option `told` changes nothing of what `file` says itself."""
        self.note(f"{file}: says {one_line(says)}; {one_line(option)} is not used for it.")

    def renamed(self, file: str, called: str, option: str) -> None:
        """Say that a name of `file` gives way to the option `told`: a name is no fact."""
        self.note(f"{file}: calls it {one_line(called)}; {one_line(option)} names it.")

    def told(self) -> tuple[str, ...]:
        """The options that were given, as the command line calls them."""
        names = [each.name for each in fields(self) if each.name not in _NO_OPTIONS]
        given = (_SINGULAR.get(name, name) for name in names if getattr(self, name))
        return tuple(f"--{name.replace('_', '-')}" for name in given)

    def none_used(self, file: str) -> None:
        """Say that `file` needs no option, where one was given."""
        if options := self.told():
            self.note(f"{file}: says everything itself; not used for it: {', '.join(options)}.")


def past(at: datetime) -> datetime:
    """`at`, an aware moment at which something was measured. Raises ConfigError for one to come."""
    if at > datetime.now(UTC) + _AHEAD:
        raise ConfigError(
            f"It cannot have been measured on {at:%Y-%m-%d}, which is yet to come.",
            "Name the moment of the measurement.",
        )
    return at


def torch_version(version: str) -> str:
    """`version` checked as a version of torch. Raises ConfigError for what does not begin like one."""
    version = version.strip()
    if not _TORCH.match(version):
        raise ConfigError(
            f"{version or 'Nothing'} is no version of torch.", "Write it as 2.13.0 or 2.13.0+cu130."
        )
    return version


def package_versions(texts: Iterable[str]) -> dict[str, str]:
    """Version by name of what was typed as NAME=VERSION. Raises ConfigError for what is no such pair."""
    versions: dict[str, str] = {}
    for text in texts:
        name, _, version = (part.strip() for part in text.partition("="))
        if not (name and version):
            raise ConfigError(
                f"{text or 'Nothing'} is no version of a library.", "Write transformers=4.57.1."
            )
        versions[name] = version
    return versions


def rows_wanted(texts: Iterable[str]) -> dict[str, str]:
    """By column what the wanted rows of a CSV hold in it, of what was typed as COLUMN=VALUE. Raises
    ConfigError for what is no such pair, and for a column with two values.
    """
    wanted: dict[str, str] = {}
    for text in texts:
        column, equals, value = (part.strip() for part in text.partition("="))
        if not (column and equals) or wanted.setdefault(column, value) != value:
            raise ConfigError(
                f"{text or 'Nothing'} names no column, or one that is named with another value.",
                "Write it as metric_name=speed.",
            )
    return wanted


def meant_words(texts: Iterable[str]) -> dict[str, str]:
    """Strategy by word, of what was typed as WORD=STRATEGY. Raises ConfigError for what is no such pair."""
    words: dict[str, str] = {}
    for text in texts:
        word, _, strategy = (part.strip() for part in text.rpartition("="))
        if not (word and strategy):
            raise ConfigError(
                f"{text or 'Nothing'} has no word or no strategy.", 'Write it as "our fast path=compiled".'
            )
        words[word] = strategy
    return words
