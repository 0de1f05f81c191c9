"""What a step needs of memory and what that is held for, looked at once everything is timed."""

from __future__ import annotations

import traceback
from collections.abc import Mapping
from typing import Any

import torch

from runner.worker.failures import is_ours
from runner.worker.held import Partitions, blocks_at_peak, saved_for_backward
from runner.worker.step.memory import step_peak, suffices_for
from runner.worker.step.steps import Variant, grad_context
from runner.worker.timing.sampling import Deadline, Side

_STEPS = 3


def peak_of(
    side: Side, variant: Variant, others: list[Variant], device: torch.device, deadline: Deadline
) -> dict[str, int | None]:
    """Peak memory of a step; missing where it cannot be read, or not before the deadline."""
    if deadline.leaves(_STEPS * side.latency_ns()):
        try:
            with side.around():
                return step_peak(variant, device, others)
        except Exception as error:
            if not is_ours(error):
                raise
            traceback.print_exc()
    return {"bytes": None, "reserved": None}


def held_of(
    sides: Mapping[str, tuple[Side, Variant, Partitions | None]], device: torch.device, deadline: Deadline
) -> dict[str, Any]:
    """What each side's memory is held for, by its name in the record, and the blocks of the first one's peak;
    missing where it cannot be read, or not before the deadline.
    """
    found: dict[str, Any] = {}
    for number, (name, (side, variant, partitions)) in enumerate(sides.items()):
        has_room = suffices_for(variant, device, 1)
        if not (has_room and deadline.leaves(_STEPS * side.latency_ns())):
            break
        try:
            with grad_context(variant.built), side.around():
                found[name] = saved_for_backward(variant, partitions)
                if number == 0:
                    found["peak_blocks"] = blocks_at_peak(variant, device)
        except Exception:  # noqa: BLE001 - functions of torch.func refuse hooks, and the trial is right
            traceback.print_exc()
    return found
