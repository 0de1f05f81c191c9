"""Ids that follow from the request: whoever plans it again, plans the same trials."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping

from ulid import ULID

from db.records import Build
from db.requests import RunRequest
from runner.canaries import canary_specs
from runner.executors.contract import Job
from runner.plan import Plan


def with_stacks(plan: Plan, stacks: Mapping[str, Build]) -> Plan:
    """`plan` with the recorded builds that stand behind names; other names stay those of configured ones."""
    trials = tuple(
        spec.model_copy(update={"stack": stacks[spec.build]}) if spec.build and spec.build in stacks else spec
        for spec in plan.trials
    )
    return plan.model_copy(update={"trials": trials})


def with_ids_of(plan: Plan, request: RunRequest) -> Plan:
    """`plan` with ids made of the request and of what each run and trial is.

    A service that takes a request over from one that died continues it: what is queued, running or measured
    already is known under the same id.
    """
    runs = {run.run_id: _id(request, "run", run.build) for run in plan.runs}
    return plan.model_copy(
        update={
            "runs": tuple(run.model_copy(update={"run_id": runs[run.run_id]}) for run in plan.runs),
            "trials": tuple(
                spec.model_copy(
                    update={
                        "run_id": runs[spec.run_id],
                        "trial_id": _id(
                            request, "trial", spec.build, spec.workload.name, spec.strategy.name, spec.round
                        ),
                    }
                )
                for spec in plan.trials
            ),
        }
    )


def jobs_with_ids(plan: Plan, request: RunRequest) -> Iterator[Job]:
    """The trials of `plan`, with the control series before and after them, under ids of the request."""
    yield from _canaries(plan, request, "before")
    yield from (Job((spec,)) for spec in plan.trials)
    yield from _canaries(plan, request, "after")


def _canaries(plan: Plan, request: RunRequest, when: str) -> Iterator[Job]:
    for run in plan.runs if plan.canaries else ():
        first = next(spec for spec in plan.trials if spec.run_id == run.run_id)
        named = (
            spec.model_copy(update={"trial_id": _id(request, "canary", run.build, spec.workload.name, when)})
            for spec in canary_specs(first)
        )
        yield Job(tuple(named), is_canaries=True)


def _id(request: RunRequest, *parts: object) -> str:
    """A ULID of the time at which the request was asked, and of a hash in place of chance."""
    digest = hashlib.sha256(repr((request.request_id, *parts)).encode()).digest()
    milliseconds = int(request.asked_at.timestamp() * 1000)
    return str(ULID.from_bytes(milliseconds.to_bytes(6, "big") + digest[:10]))
