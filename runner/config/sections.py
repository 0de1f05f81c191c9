"""What the sections of the configuration are made of: the base of every table, names, sizes, addresses."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, Self
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    SecretStr,
    StringConstraints,
    model_validator,
)
from pydantic_settings import NoDecode

from compilewatch.db.cause.notes import LONGEST_REASON
from compilewatch.db.records.access import Origin
from compilewatch.db.records.fields import WITHOUT_NUL, Closed
from compilewatch.runner.worker.timing.sampling import SamplingPlan

LogFormat = Literal["text", "json"]
ShortName = Annotated[
    str, StringConstraints(min_length=1, max_length=100, pattern=r"^[A-Za-z0-9][\w.+@:-]*$")
]
Reason = Annotated[str, StringConstraints(min_length=1, max_length=LONGEST_REASON, pattern=WITHOUT_NUL)]
Positive = Annotated[int, Field(ge=1)]
# A week: beyond what a trial takes, within what a system call can wait for.
Timeout = Annotated[float, Field(gt=0, le=604_800)]
Device = Annotated[str, StringConstraints(pattern=r"^(auto|cpu|cuda(:\d+)?)$")]
Scope = Annotated[str, StringConstraints(pattern=r"^(full|regional|nested|submodule:[\w.]+)$")]
Sizes = Annotated[tuple[Positive, ...], Field(min_length=1)]
Dtype = Literal["float32", "float16", "bfloat16", "float64"]
Dtypes = Annotated[tuple[Dtype, ...], Field(min_length=1)]


def split_list(value: object) -> object:
    """A variable of the environment holds a list as "eager,default"."""
    return [part.strip() for part in value.split(",")] if isinstance(value, str) else value


def _web_address(value: str) -> str:
    """An http or https address with a host. The complaint must not repeat it: it may hold a token."""
    try:
        parts = urlsplit(value)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable or not value.isascii() or not value.isprintable() or " " in value:
        raise ValueError("an address must be http://HOST... or https://HOST...")
    return value


def secret_web_address(value: SecretStr) -> SecretStr:
    """`value`, which is a web address. Raises ValueError without repeating it."""
    _web_address(value.get_secret_value())
    return value


WebAddress = Annotated[str, AfterValidator(_web_address)]

SIZE = "a whole number of at least 1, or a list of them"


# The keys of `[run]` that say how samples are taken.

_NS = 1_000_000_000
Seconds = Annotated[float, Field(gt=0)]


def _seconds(ns: int) -> float:
    return ns / _NS


class SamplingSettings(Closed):
    """How long a side warms up, and how many samples in what blocks it gives. Bounds hold per side.

    Warm is a side after `warmup_calls` and `warmup_s`, once the median of the last third of its calls is not
    more than 10 % below that of the third before; it has no longer than `warmup_max_calls` or `warmup_max_s`.
    """

    samples: Annotated[int, Field(ge=5)] = SamplingPlan.samples
    """timed iterations per trial, at least"""
    max_samples: Positive = SamplingPlan.max_samples
    """at most, while the interval below is not reached"""
    relative_interval: Annotated[float, Field(gt=0, lt=1)] = SamplingPlan.relative_interval
    """half the width of the median's 95 % interval, over the median, that is enough"""
    sampling_max_s: Seconds = _seconds(SamplingPlan.max_ns)
    """no new samples after this, the fewest excepted"""
    block_s: Seconds = _seconds(SamplingPlan.block_ns)
    """eager and compiled alternate at least this often"""
    settle_s: Annotated[float, Field(ge=0, le=10)] = _seconds(SamplingPlan.settle_ns)
    """untimed steps at the start of each block"""
    warmup_calls: Positive = SamplingPlan.warmup_calls
    """at least"""
    warmup_s: Annotated[float, Field(ge=0)] = _seconds(SamplingPlan.warmup_ns)
    """at least"""
    warmup_max_calls: Positive = SamplingPlan.warmup_max_calls
    """steady or not"""
    warmup_max_s: Seconds = _seconds(SamplingPlan.warmup_max_ns)
    """steady or not"""
    flush_l2: bool = SamplingPlan.flush_l2
    """overwrite the GPU's L2 cache before each sample"""

    def sampling_plan(self) -> SamplingPlan:
        """As the measured process takes it."""
        return SamplingPlan(
            samples=self.samples,
            max_samples=self.max_samples,
            relative_interval=self.relative_interval,
            max_ns=_ns(self.sampling_max_s),
            block_ns=_ns(self.block_s),
            settle_ns=_ns(self.settle_s),
            warmup_calls=self.warmup_calls,
            warmup_ns=_ns(self.warmup_s),
            warmup_max_calls=self.warmup_max_calls,
            warmup_max_ns=_ns(self.warmup_max_s),
            flush_l2=self.flush_l2,
        )


def _ns(seconds: float) -> int:
    return round(seconds * _NS)


# `[[schedule]]` and `[service]`: what `compilewatch schedule` does.


class ScheduleSettings(Closed):
    """`[[schedule]]`: when `compilewatch schedule` measures a suite."""

    name: ShortName
    cron: str
    """five fields as in crontab, such as '0 3 * * mon-fri', or @daily"""
    timezone: str = "UTC"
    """a name such as Europe/Berlin"""
    suite: ShortName | None = None
    """unset: that of [run]"""
    trials: Positive | None = None
    """fresh processes per case; unset: the suite's"""
    machine: str | None = None
    """pattern of the hosts that measure it; unset: the service that is first"""

    @model_validator(mode="after")
    def _comes_sometime(self) -> Self:
        # APScheduler takes a while to import, and most commands need no schedule.
        from compilewatch.runner.config.cron import parse_cron

        parse_cron(self.cron, self.timezone)
        return self


class ServiceSettings(Closed):
    """`[service]`: what `compilewatch schedule` does besides the schedules."""

    watch_builds: bool = True
    """measure when a torch or driver is new on this host"""
    keep_samples_days: Positive | None = None
    """trials older than this lose their samples and keep a summary; unset: never"""
    keep_traces_days: Positive | None = None
    """traces older than this are deleted from this host's disk; unset: never"""
    log_format: LogFormat = "text"
    """text, or json: one object per line"""


# `[fleet]`: measuring on other hosts, through a queue on the team's PostgreSQL.


Word = Annotated[str, StringConstraints(min_length=1, pattern=r"^[^\x00]*$")]


class LaunchSettings(Closed):
    """`[fleet.launch.QUEUE]`: how this host brings a worker to a machine type where trials wait."""

    command: Annotated[tuple[Word, ...], Field(min_length=1)]
    """a list of a program and its arguments, such as ["sbatch", "worker.sh"]"""
    jobs_command: Annotated[tuple[Word, ...], Field(min_length=1)] | None = None
    """prints a line per job that waits or runs at the scheduler; unset: launches are counted"""
    at_most: Positive = 1
    """workers that live or are on their way"""
    start_s: Timeout = 3600.0
    """without its worker after this, a launch has failed"""
    timeout_s: Annotated[float, Field(ge=1, le=3600)] = 60.0
    """either command is ended if it takes longer"""
    backoff_s: Annotated[float, Field(ge=0, le=3600)] = 60.0
    """before the next launch after a failure; doubles up to an hour"""


class FleetSettings(Closed):
    """`[fleet]`: what `compilewatch schedule` leaves to the workers, and how workers are watched."""

    queues: Annotated[tuple[ShortName, ...], NoDecode, BeforeValidator(split_list)] = ()
    """machine types the service has workers measure on; empty: it measures itself"""
    heartbeat_s: Annotated[float, Field(ge=0.5, le=60)] = 5.0
    """between two signs of life of a worker"""
    stalled_s: Annotated[float, Field(ge=2, le=3600)] = 30.0
    """a worker without a sign of life for longer loses its trial to another"""
    idle_s: Annotated[float, Field(ge=0, le=3600)] = 15.0
    """how long a worker without a trial stays ready to begin the next at once"""
    spool_dir: Path | None = None
    """where `run` writes trials on a host that reaches no database; unset: nowhere"""
    launch: dict[ShortName, LaunchSettings] = Field(default={})
    """a table for each of `queues` whose workers the service launches"""

    @model_validator(mode="after")
    def _launches_for_its_queues(self) -> Self:
        other = next((queue for queue in self.launch if queue not in self.queues), None)
        if other is not None:
            raise ValueError(f"{other} has a launch command and is none of the queues")
        return self


Watched = Literal["torch", "triton", "transformers", "diffusers", "timm", "torchao"]


class ReleaseWatchSettings(Closed):
    """`[watch]`: releases that the service tries in an environment of its own before anybody installs them.

    Names and index are this host's alone; a database, link or request changes none of it.
    """

    packages: tuple[Watched, ...] = ()
    """such as ["torch", "transformers"]; empty: nothing is tried"""
    pre: bool = False
    """release candidates and nightlies too"""
    index_url: WebAddress | None = None
    """a package index; unset: pip's own"""
    requirements: tuple[str, ...] = ()
    """what your models import besides, as pip names it"""
    suite: ShortName | None = None
    """unset: that of [run]"""
    trials: Annotated[int, Field(ge=3)] = 5
    """fresh processes per case and build"""
    build: ShortName | None = None
    """the [[build]] in use; unset: the Python that compilewatch runs with"""
    max_hours: Annotated[float, Field(gt=0, le=168)] = 3.0
    """installing and measuring one release takes no longer"""
    max_disk_gb: Annotated[float, Field(gt=0)] = 20.0
    """its environment takes no more, what pip unpacks included"""


class EmbedSettings(Closed):
    """`[embed]`: where charts of the dashboard may be framed."""

    origins: tuple[Origin, ...] = ()
    """sites that may show `/embed/...` in a frame, such as https://wiki.example.org"""


# The configuration of frozen reports.


class ReportSettings(Closed):
    """`[report]`: what becomes of frozen reports."""

    keep_days: Positive | None = None
    """reports older than this lose their content, as if revoked; unset: never"""
