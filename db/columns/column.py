"""What a row of the table of columns says of one label or figure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """What a column holds. Each table and format has its type for it."""

    TEXT = "text"
    MOMENT = "moment"
    INTEGER = "integer"
    FLOAT = "float"
    FLAG = "flag"
    JSON = "json"


class Holder(StrEnum):
    """The table that stores a column; `none` where it follows from others as they are read."""

    TRIAL = "trial"
    SERIES = "series"
    MACHINE = "machine"
    BUILD = "build"
    CONDITIONS = "conditions"
    WORKLOAD = "workload"
    STRATEGY = "strategy"
    NONE = "none"


class SummaryKind(StrEnum):
    """How trials become the value of their case; `own` where the column has a formula of its own."""

    OWN = "own"
    MEAN = "geometric mean of the timed trials"
    PASSED = "geometric mean of the passed trials"
    LARGEST = "largest of the passed trials"
    SMALLEST = "smallest of the passed trials"


class Threshold(StrEnum):
    """How small a change the judge announces (`db.judge.policy`); `exact` is compared without noise."""

    FINE = "fine"
    COARSE = "coarse"
    EXACT = "exact"


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One label or figure of a trial or a case; `column` is its name in the database, frames, files, the API.

    `place` is where the trial's record has it, empty where the store works it out. `holder` and `stored` are
    the table and column that keep it. `choices`: the words that it can be. `label`: a case has that of its
    newest trial. `in_frames` and `in_exports`: whether frames of trials and exported files have it.

    What has a `key` is a metric: `name` is what people read, `unit` what the column holds, `write` how a
    value is written. `axis` is a divisor and the unit that a chart shows after it; None where it has no
    history. `banded`: a history has its 10th and 90th percentile across trials; `ends` names other columns
    of ends. `interval` are the columns of its 95 % interval. `eager_too`: whether eager has one of its own.
    `threshold` is what a history announces, `judged` whether two builds are compared by it.
    """

    column: str
    kind: Kind
    definition: str = ""
    place: str = ""
    holder: Holder = Holder.TRIAL
    stored: str = ""
    choices: type[StrEnum] | None = None
    required: bool = False
    label: bool = False
    in_frames: bool = True
    in_exports: bool = True
    summary: SummaryKind = SummaryKind.OWN
    key: str = ""
    name: str = ""
    unit: str = ""
    write: Callable[..., str] = str
    higher_is_better: bool = False
    axis: tuple[float, str] | None = None
    banded: bool = False
    ends: tuple[str, str] | None = None
    interval: tuple[str, str] | None = None
    eager_too: bool = True
    on_every_device: bool = True
    threshold: Threshold | None = None
    judged: bool = False

    @property
    def at(self) -> str:
        """Its name in the table that keeps it."""
        return self.stored or self.column

    @property
    def band(self) -> tuple[str, str] | None:
        """Columns of its ends across trials."""
        return (f"{self.column}_p10", f"{self.column}_p90") if self.banded else self.ends

    @property
    def divisor(self) -> float:
        """What a value is divided by on a chart's axis."""
        return self.axis[0] if self.axis else 1

    @property
    def axis_unit(self) -> str:
        """The unit on a chart's axis."""
        return self.axis[1] if self.axis else self.unit

    @property
    def axis_title(self) -> str:
        """Name and unit: "Energy per step (J)"."""
        return f"{self.name} ({self.axis_unit})"

    @property
    def word(self) -> str:
        """The name inside a sentence; what begins with letters that stand for words, such as TTFT, stays."""
        return self.name if self.name[:2].isupper() else self.name.lower()
