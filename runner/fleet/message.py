"""One job as the queue holds it: names, sizes and numbers, never code.

A worker looks every name up in its own configuration and checks that it means the same there. What the
database says is not executed, and is no path: interpreter, module, search path, environment and threads are
those of the host that measures.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Literal, Self

from pydantic import Field, ValidationError, model_validator

from compilewatch.db.errors import CompilewatchError, one_line
from compilewatch.db.records.fields import Identifier, Record, first_problem
from compilewatch.db.records.strategies import EAGER
from compilewatch.db.records.trial import Build, Strategy, Workload
from compilewatch.runner.catalog.definition import WorkloadDefinition
from compilewatch.runner.config.sections import Timeout
from compilewatch.runner.config.settings import Settings
from compilewatch.runner.plan.builds import known_builds
from compilewatch.runner.plan.host_stacks import HostStacks
from compilewatch.runner.plan.plan import canary_workloads, workload_spec
from compilewatch.runner.plan.selection import known_workloads, select_by_data
from compilewatch.runner.plan.trial_spec import Diagnostics, Job, TorchSettings, TrialSpec
from compilewatch.runner.worker.timing.sampling import SamplingPlan


class RefusedError(CompilewatchError):
    """This host cannot measure what it was asked to."""


_SHARED = ("run_id", "suite", "label", "strategy", "sampling", "timeout_s", "seed", "round", "build", "stack")
"""What a message and a trial's specification say alike."""


class Message(Record):
    """A `Job`, portable. `workloads` has one entry per trial id, in the same order."""

    schema_: Literal["compilewatch.job/1"] = "compilewatch.job/1"
    trial_ids: Annotated[tuple[Identifier, ...], Field(min_length=1)]
    run_id: Identifier
    suite: str | None
    label: str | None
    workloads: tuple[Workload, ...]
    strategy: Strategy
    matmul_precision: Literal["highest", "high", "medium"]
    sampling: SamplingPlan
    timeout_s: Timeout
    seed: int
    round: int
    build: str | None
    stack: Build | None
    is_canaries: bool
    profile: bool
    trace: bool

    @model_validator(mode="after")
    def _one_workload_a_trial(self) -> Self:
        if len(self.workloads) != len(self.trial_ids) or (len(self.workloads) > 1 and not self.is_canaries):
            raise ValueError("must name one workload for each trial, and one alone unless they are canaries")
        return self


def message_of(job: Job) -> Message:
    """What the queue is told of `job`."""
    first = job.specs[0]
    return Message(
        **{name: getattr(first, name) for name in _SHARED},
        trial_ids=tuple(spec.trial_id for spec in job.specs),
        workloads=tuple(spec.workload.record() for spec in job.specs),
        matmul_precision=first.settings.matmul_precision,
        is_canaries=job.is_canaries,
        profile=first.diagnostics.profile,
        trace=first.diagnostics.trace_into is not None,
    )


def read_message(content: object) -> Message:
    """A message from the queue. Raises RefusedError where it is none, as of another release."""
    try:
        return Message.model_validate(content)
    except ValidationError as error:
        raise RefusedError(
            f"A job of the queue cannot be read: {first_problem(error, 'all of it')}.",
            "Run the same release of compilewatch on every host.",
        ) from None


def specs_without_code(message: Message, *, device: str, threads: int) -> list[TrialSpec]:
    """Enough of each trial to record that it was not measured here."""
    return [
        TrialSpec.model_validate(
            _stated(message, number)
            | {"workload": workload.model_dump() | {"target": ""}, "device": device, "threads": threads}
        )
        for number, workload in enumerate(message.workloads)
    ]


def job_of(
    message: Message, settings: Settings, *, device: str, host_stacks: Callable[[], HostStacks] | None = None
) -> Job:
    """The job with this host's code, interpreter, environment and threads.

    `host_stacks` tells the builds of this host, by default all over again. Raises RefusedError for a name
    that this host does not know or knows as something else, MissingBuildError for a recorded build that
    is not here, and ConfigError for a workload that cannot be built here.
    """
    definitions, environment = _definitions(message, settings, device)
    interpreter = None
    if message.stack is not None:
        stacks = host_stacks() if host_stacks else HostStacks.read(settings)
        interpreter = stacks.build_like(message.stack).python
    elif message.build is not None:
        builds = known_builds(settings)
        if message.build not in builds:
            raise RefusedError(f"This host has no build {message.build!r}.", "Add it as a [[build]].")
        interpreter = builds[message.build].python
    ours = {
        "device": device,
        "threads": settings.threads,
        "worker_env": environment,
        "interpreter": interpreter,
        "idle_wait_s": settings.run.idle_wait_s,
        "diagnostics": Diagnostics(
            message.profile,
            settings.data_dir if message.trace else None,
            bisect_s=settings.run.bisect_s if message.round == 0 else 0.0,
        ),
    }
    specs = tuple(
        TrialSpec.model_validate(
            _stated(message, number) | ours | {"workload": workload_spec(definition).model_dump()}
        )
        for number, definition in enumerate(definitions)
    )
    return Job(specs, is_canaries=message.is_canaries)


def _definitions(
    message: Message, settings: Settings, device: str
) -> tuple[list[WorkloadDefinition], dict[str, str]]:
    if message.is_canaries:
        # Canaries are eager: another strategy would be the queue's, with options of its own.
        if message.strategy != EAGER:
            raise _differs("strategy", message.strategy.name)
        known = {definition.name: definition for definition in canary_workloads(device)}
        return [_same(known, workload) for workload in message.workloads], {}
    (workload,) = message.workloads
    known = known_workloads(settings)
    definition = _same(known, workload)
    chosen = select_by_data(settings, message.suite, workload.name, message.strategy.name)
    if chosen.strategies != (message.strategy,):
        raise _differs("strategy", message.strategy.name)
    return [definition], dict(chosen.worker_env[workload.name])


def _same(known: dict[str, WorkloadDefinition], workload: Workload) -> WorkloadDefinition:
    definition = known.get(workload.name)
    if definition is None:
        raise RefusedError(
            f"This host's configuration has no workload {one_line(workload.name)!r}.",
            "Give every host of the fleet the same configuration.",
        )
    if definition.record() != workload:
        raise _differs("workload", workload.name)
    return definition


def _differs(kind: str, name: str) -> RefusedError:
    return RefusedError(
        f"This host defines the {kind} {one_line(name)!r} differently from the service.",
        "Give every host of the fleet the same configuration and source files.",
    )


def _stated(message: Message, number: int) -> dict[str, object]:
    """What a message says of its trial `number`, without its workload."""
    return {name: getattr(message, name) for name in _SHARED} | {
        "trial_id": message.trial_ids[number],
        "settings": TorchSettings(matmul_precision=message.matmul_precision),
    }
