"""One trial to run, as the parent hands it to the measured process: `compilewatch.spec/1`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from db.records.fields import Identifier
from db.records.trial import Build, Strategy, Workload
from runner.plan.diagnostics import NO_DIAGNOSTICS, Diagnostics
from runner.worker.sampling import SamplingPlan

SPEC_SCHEMA: Literal["compilewatch.spec/1"] = "compilewatch.spec/1"


class Part(BaseModel):
    """Base of every part of a plan: immutable and closed."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class WorkloadSpec(Workload):
    """The workload of a record, and how the worker builds it."""

    target: str
    kwargs: dict[str, Any] = Field(default={})
    regions: tuple[str, ...] = ()
    path: tuple[str, ...] = ()


MatmulPrecision = Literal["highest", "high", "medium"]


class TorchSettings(Part):
    """Global settings of torch that change speed; stored in the trial's `build.settings`."""

    matmul_precision: MatmulPrecision


class TrialSpec(Part):
    """One trial to run. Its JSON is the worker's standard input; excluded fields concern the parent alone."""

    schema_: Annotated[Literal["compilewatch.spec/1"], Field(alias="schema")] = SPEC_SCHEMA
    trial_id: Identifier
    run_id: Identifier
    suite: str | None
    label: str | None
    workload: WorkloadSpec
    strategy: Strategy
    device: str
    threads: int
    settings: TorchSettings
    sampling: SamplingPlan
    timeout_s: float
    seed: int
    worker_env: dict[str, str] = {}
    round: int = Field(exclude=True)
    build: str | None = Field(default=None, exclude=True)
    stack: Build | None = Field(default=None, exclude=True)
    """The recorded build to measure again; `build` is then only what the plan calls it."""
    interpreter: Path | None = Field(default=None, exclude=True)
    diagnostics: Diagnostics = Field(default=NO_DIAGNOSTICS, exclude=True)
    idle_wait_s: float = Field(default=0.0, exclude=True)
    """How long to wait for other processes to leave the GPU; then the trial is measured all the same."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True, serialize_by_alias=True)

    @property
    def case(self) -> str:
        """Workload and strategy by name, for a person."""
        return f"{self.workload.name} / {self.strategy.name}"
