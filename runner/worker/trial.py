"""One trial from the inside, in the order in which a process meets its costs."""

from __future__ import annotations

import gc
import sys
import time
import traceback
from typing import Any

from runner.worker import affinity
from runner.worker.channel import Channel
from runner.worker.failures import WrongResultError, describe, kind_of


def run(spec: dict[str, Any], channel: Channel, *, entered_ns: int) -> None:
    """Measure what `spec` says and write the record, of a failure if need be. Raises nothing."""
    content: dict[str, Any] = {"cold_start": {}, "entered_ns": entered_ns}
    try:
        _measure(spec, channel, content)
        content["status"] = "ok"
    except WrongResultError as error:
        content |= {"status": "failed", "failure": _failure("wrong_result", channel.phase, str(error))}
    except BaseException as error:  # noqa: BLE001
        traceback.print_exc()
        sys.stderr.flush()
        kind = kind_of(error, channel.phase)
        content |= {"status": "failed", "failure": _failure(kind, channel.phase, describe(error))}
    channel.record(content)


def _failure(kind: str, phase: str, message: str) -> dict[str, str]:
    return {"kind": kind, "phase": phase, "message": message}


def _measure(spec: dict[str, Any], channel: Channel, content: dict[str, Any]) -> None:
    cold: dict[str, Any] = content["cold_start"]
    channel.enter("import_torch")
    started = time.monotonic_ns()
    import torch

    imported = time.monotonic_ns()
    cold["import_torch_ns"] = imported - started
    affinity.release_children()
    from runner.worker import canary, host, session

    session.configure(spec)
    channel.facts(
        host.machine_facts(spec["device"], spec["threads"]),
        host.build_facts(spec["device"], spec.get("settings", {})),
    )
    if spec.get("canaries"):
        channel.enter("sampling")
        pause = channel.pause if spec.get("device_state") else lambda: None
        content["canaries"] = canary.measure(torch.device(spec["device"]), spec["canaries"], pause)
        return
    if spec.get("probes"):
        from runner.worker import probes

        channel.enter("sampling")
        content["probes"] = probes.measure(torch.device(spec["device"]), spec["probes"])
        return
    trial = session.Session(spec, channel, content)
    cold["harness_ns"] = started - content["entered_ns"] + time.monotonic_ns() - imported
    trial.start_cold()
    if spec.get("settle"):
        trial.settle()
        return
    if spec.get("prime"):
        trial.save_cache()
        return
    if spec.get("profile"):
        trial.profile()
        return
    gc.collect()
    gc.freeze()
    gc.disable()
    trial.warm_up()
    trial.sample()
    gc.enable()
    trial.inspect()
