"""What can be configured, and its checks: `compilewatch.toml`, then `COMPILEWATCH_*`, then options.

Later sources win. A setting inside a table is reached from the environment with two underscores:
`COMPILEWATCH_RUN__TRIALS=5`. Reading and merging the sources is in `runner.config.sources`.
"""

from __future__ import annotations

import itertools
import math
import re
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    PrivateAttr,
    SecretStr,
    StringConstraints,
    model_validator,
)
from pydantic_settings import BaseSettings, NoDecode, PydanticBaseSettingsSource, SettingsConfigDict

from compilewatch.db.errors import ConfigError, one_line
from compilewatch.db.judge.policy import Policy, Target
from compilewatch.db.records.access import SignIn
from compilewatch.db.records.fields import Closed
from compilewatch.db.records.requests import Limits
from compilewatch.db.records.strategies import CACHE_OF_KIND
from compilewatch.db.records.trial import Strategy, StrategyKind, Task
from compilewatch.runner.config.sections import (
    SIZE,
    Device,
    Dtype,
    Dtypes,
    EmbedSettings,
    FleetSettings,
    Positive,
    Reason,
    ReleaseWatchSettings,
    ReportSettings,
    SamplingSettings,
    ScheduleSettings,
    Scope,
    ServiceSettings,
    ShortName,
    Sizes,
    Timeout,
    WebAddress,
    secret_web_address,
    split_list,
)
from compilewatch.runner.worker.step.host import step_threads

Ranks = Annotated[int, Field(ge=1, le=64)]


class RunSettings(SamplingSettings):
    """`[run]`: how `compilewatch run` measures when its options do not say otherwise."""

    suite: ShortName = "smoke"
    strategies: Annotated[tuple[ShortName, ...], NoDecode, BeforeValidator(split_list)] = ()
    """empty: those of the suite"""
    trials: Positive | None = None
    """fresh processes per case; unset: the suite's"""
    timeout_s: Timeout = 600
    """a trial that takes longer is a failure"""
    bisect_s: Annotated[float, Field(ge=0, le=604_800)] = 300.0
    """for the part of the compiler that makes the first trial of a case fail; 0: not sought"""
    idle_wait_s: Annotated[float, Field(ge=0)] = 60.0
    """for other processes to leave the GPU; then trials are marked suspect"""
    task: Task | None = None
    """of what is named as module:function; unset: by what the function returns"""
    threads: Positive | None = None
    """of a step on a CPU; unset: as torch decides, at most one less than the CPUs"""
    device: Device = "auto"
    """auto, cpu, cuda or cuda:N"""
    compile_threads: Positive | None = None
    """with how many threads torch compiles; unset: as torch decides, the CPUs up to 32"""
    matmul_precision: Literal["highest", "high", "medium"] = "highest"
    seed: int = 0
    """of weights, inputs and the order of trials"""
    canaries: bool = True
    """measure the machine itself, before and after: its control series"""


def _values(value: tuple[Any, ...]) -> tuple[Any, ...]:
    for each in value:
        is_number = isinstance(each, int | float) and math.isfinite(each)
        if not is_number and not (isinstance(each, str) and _NAME.fullmatch(each)):
            raise ValueError(f"{each!r} is no number, true, false or short word")
    return value


OptionValues = Annotated[tuple[Any, ...], Field(min_length=1), AfterValidator(_values)]
PartPath = Annotated[str, StringConstraints(pattern=r"^\w+(\.\w+)*$", max_length=200)]
# `runner.worker.compiler.knobs.SETTINGS`: what torch has one of.
_OF_PROCESS = ("dynamo", "functorch")
_NAME = re.compile(r"[A-Za-z0-9][\w.+@:-]{0,99}")
# A switch is no number.
Items = Annotated[float, Field(gt=0, strict=True)]


VariantName = Literal["float32", "bf16", "int8", "fp8"]


class WorkloadSettings(Closed):
    """`[[workload]]`: a model or function of your own, or another size of a built-in one.

    `target` is "module:function" (a file beside the configuration) or the name of a built-in workload. A
    list as `batch_size`, `dtype`, `ranks` or an entry of `shape` makes one workload of each value.
    """

    name: ShortName
    target: str
    task: Task | None = None
    """unset: by what the function returns, or the built-in's"""
    batch_size: Positive | Sizes | None = Field(default=None, description=SIZE)
    shape: dict[str, Positive | Sizes] = Field(default={}, description=SIZE)
    dtype: Dtype | Dtypes | None = None
    """one of float32, float16, bfloat16, float64, or a list of them; unset: float32 or the built-in's"""
    variants: tuple[VariantName, ...] = ()
    """of float32, bf16, int8 and fp8, the last two by torchao; one workload of each, NAME-VARIANT"""
    item: str | None = None
    """what throughput counts: image, token, sequence"""
    items_per_iteration: Items | tuple[str, ...] | None = None
    """a number, or the sizes that multiply to it: ["batch_size", "sequence_length"]; unset: batch_size, for
    tokens times `sequence_length` of shape
    """
    kwargs: dict[str, Any] = Field(default={})
    ranks: Ranks | Annotated[tuple[Ranks, ...], Field(min_length=1)] | None = None
    """1 to 64 processes of a process group that take each step together, as DDP and FSDP do, or a list"""
    regions: tuple[str, ...] = ()
    """classes of the repeated blocks of +regional; unset: found by themselves"""
    path: tuple[str, ...] = ()
    """more directories for sys.path, relative to the file"""
    reason: Reason | None = None
    """why it is set up so, for who reads its results; starts no new series"""

    @model_validator(mode="after")
    def _variants_or_dtype(self) -> Self:
        if self.variants and self.dtype is not None:
            raise ValueError("variants say the dtype; leave one out")
        return self


class SuiteSettings(Closed):
    """`[[suite]]`: a named list of workloads and strategies."""

    name: ShortName
    workloads: Annotated[tuple[str, ...], Field(min_length=1)]
    strategies: Annotated[tuple[ShortName, ...], Field(min_length=1)] = ("eager", "default")
    trials: Positive = 3
    worker_env: dict[str, str] = Field(default={})


def _of_name(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else f"{value}"


class RegionSettings(Closed):
    """`[strategy.regions.PATH]`: how one part of the model is compiled; what is unset is the strategy's."""

    mode: ShortName | None = None
    backend: ShortName | None = None
    dynamic: bool | None = None
    fullgraph: bool | None = None
    options: dict[str, Any] | None = None

    @model_validator(mode="after")
    def _of_a_part(self) -> Self:
        if self.options and self.mode is not None:
            raise ValueError("torch.compile takes mode or options, not both; leave one out")
        whole = next((name for name in self.options or () if name.partition(".")[0] in _OF_PROCESS), None)
        if whole is not None:
            raise ValueError(f"{whole} holds for the whole process; put it into options of the strategy")
        return self


class StrategySettings(Closed):
    """`[[strategy]]`: a combination of your own, as `torch.compile` takes it."""

    name: ShortName
    kind: StrategyKind = StrategyKind.COMPILE
    mode: ShortName | None = "default"
    backend: ShortName = "inductor"
    dynamic: bool | None = None
    fullgraph: bool = False
    scope: Scope = "full"
    """full, regional, nested or submodule:PATH"""
    regions: dict[PartPath, RegionSettings] = Field(default={})
    """parts of the model that are compiled, each with what it sets itself; the rest stays eager"""
    options: dict[str, Any] = Field(default={})
    sweep: dict[str, OptionValues] = Field(default={})
    """options with lists of values: one strategy of each combination, NAME-OPTION-VALUE"""
    reason: Reason | None = None
    """why it is set up so, for who reads its results; starts no new series"""

    @model_validator(mode="after")
    def _mode_or_options(self) -> Self:
        given = self.options or self.sweep
        if given and "mode" in self.model_fields_set and self.mode is not None:
            raise ValueError("torch.compile takes mode or options, not both; leave one out")
        if self.regions and (self.scope != "full" or self.kind is not StrategyKind.COMPILE):
            raise ValueError("regions say what torch.compile is for; leave out kind and scope")
        inner = [path for path in self.regions for other in self.regions if path.startswith(f"{other}.")]
        if inner:
            raise ValueError(f"{inner[0]} lies within another of the regions; leave one out")
        if twice := self.options.keys() & self.sweep.keys():
            raise ValueError(f"{min(twice)} is in options and in sweep; leave one out")
        return self

    def strategies(self) -> list[Strategy]:
        """As trial records name them: itself, or one for each combination of its sweep.

        Raises ConfigError for a value that is no part of a name.
        """
        names, values = list(self.sweep), itertools.product(*self.sweep.values())
        return [self._strategy(dict(zip(names, each, strict=True))) for each in values]

    def _strategy(self, point: dict[str, Any]) -> Strategy:
        name = "-".join([self.name, *(f"{option}-{_of_name(value)}" for option, value in point.items())])
        if not _NAME.fullmatch(name):
            raise ConfigError(
                f"The sweep of [[strategy]] {self.name!r} makes a name that is none: {one_line(name)}.",
                "Values are numbers, true, false or short words of letters, digits and . + @ : -",
            )
        options = {**self.options, **point}
        return Strategy(
            name=name,
            kind=self.kind,
            backend=None if self.kind is StrategyKind.EAGER else self.backend,
            mode=None if options or self.kind is not StrategyKind.COMPILE else self.mode,
            dynamic=self.dynamic,
            fullgraph=self.fullgraph,
            scope="regions" if self.regions else self.scope,
            cache=CACHE_OF_KIND[self.kind],
            options=options,
            regions={path: region.model_dump(exclude_none=True) for path, region in self.regions.items()},
            reason=self.reason,
        )


THIS_INTERPRETER = "this-interpreter"
"""The name of the build that compilewatch itself runs with, where builds are listed."""


RELEASE_IN_TRIAL = "release-in-trial"
"""How the names of the builds begin that `[watch]` makes of new releases, and removes."""


class BuildSettings(Closed):
    """`[[build]]`: another interpreter with a torch in it, measured by the same worker."""

    name: ShortName
    python: Path


class NotifySettings(Closed):
    """`[notify]`: how the messages to the `[[channel]]` entries are made and sent."""

    base_url: WebAddress | None = None
    """where people reach the dashboard; messages and previews link there"""
    attempts: Annotated[int, Field(ge=1, le=10)] = 4
    """tries per message, further and further apart"""
    timeout_s: Annotated[float, Field(gt=0, le=120)] = 10
    """of one try"""


class ChannelSettings(Closed):
    """`[[channel]]`: channels of confirmed regressions. Addresses hold tokens and are never printed."""

    name: ShortName
    webhook: Annotated[SecretStr, AfterValidator(secret_web_address)] | None = None
    """an address that takes a JSON document by POST"""
    apprise: SecretStr | None = None
    """an address as apprise writes it, such as slack://... or mailto://..."""

    @model_validator(mode="after")
    def _one_address(self) -> Self:
        if (self.webhook is None) == (self.apprise is None):
            raise ValueError("a channel needs webhook or apprise, and not both")
        return self


class Settings(BaseSettings):
    """Everything the file and the environment can say. Made by `runner.config.sources.load_settings`."""

    database_url: Annotated[str, Field(min_length=1)] = "sqlite:///compilewatch.db"
    data_dir: Path = Path(".compilewatch")
    """traces, logs and other torch builds"""
    run: RunSettings = RunSettings()
    workload: tuple[WorkloadSettings, ...] = ()
    suite: tuple[SuiteSettings, ...] = ()
    strategy: tuple[StrategySettings, ...] = ()
    build: tuple[BuildSettings, ...] = ()
    policy: Policy = Policy()
    """when a change counts as real"""
    target: tuple[Target, ...] = ()
    notify: NotifySettings = NotifySettings()
    channel: tuple[ChannelSettings, ...] = ()
    schedule: tuple[ScheduleSettings, ...] = ()
    service: ServiceSettings = ServiceSettings()
    watch: ReleaseWatchSettings = ReleaseWatchSettings()
    auth: SignIn | None = None
    """how people sign in; absent: no login"""
    fleet: FleetSettings = FleetSettings()
    report: ReportSettings = ReportSettings()
    embed: EmbedSettings = EmbedSettings()
    limits: Limits = Limits()
    csv_columns: dict[str, str] = {}
    """our field -> column, for `import --format csv`"""

    model_config = SettingsConfigDict(
        frozen=True,
        extra="forbid",
        use_attribute_docstrings=True,
        env_prefix="COMPILEWATCH_",
        env_nested_delimiter="__",
    )
    _config_file: Path | None = PrivateAttr(None)

    @property
    def config_file(self) -> Path | None:
        """The file that was read, if any."""
        return self._config_file

    @property
    def project_root(self) -> Path:
        """Where user modules are looked for: beside the configuration file, else the working directory."""
        return self._config_file.parent if self._config_file else Path.cwd()

    @property
    def builds(self) -> tuple[BuildSettings, ...]:
        """The [[build]] entries, with paths made absolute from beside the configuration file."""
        return tuple(
            # Not resolved: the python of a virtual environment is a link, and means the environment.
            BuildSettings(name=entry.name, python=self.project_root / entry.python.expanduser())
            for entry in self.build
        )

    def with_run(self, **changes: object) -> Settings:
        """The same with other values in `[run]`."""
        return self.model_copy(update={"run": self.run.model_copy(update=changes)})

    @property
    def threads(self) -> int:
        """Threads of a measured process."""
        return self.run.threads or step_threads()

    @model_validator(mode="after")
    def _names_are_unique(self) -> Self:
        for table in ("workload", "suite", "strategy", "build", "channel", "schedule"):
            names = [entry.name for entry in getattr(self, table)]
            twice = next((name for name in names if names.count(name) > 1), None)
            if twice:
                raise ValueError(f"two [[{table}]] entries are named {twice!r}; names must differ")
        return self

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],  # noqa: ARG003
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,  # noqa: ARG003
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Only what `load_settings` hands over, so that every value's origin is known."""
        return (init_settings,)
