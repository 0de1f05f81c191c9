"""How far a gradient is from finite differences of the loss that it is said to be of.

A step that draws random numbers has no other reference: eager draws others. From one seed compiled code draws
the same ones every time, so that its loss is a function of its weights, with one gradient.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch

_DIRECTIONS = 4
RUNS = 2 * _DIRECTIONS
"""Losses that are taken of one gradient."""
STEP = 1e-4
"""What a step is about to change the loss by, of the loss: float32 tells a thousandth of that apart."""


def error_of(
    parameter: torch.nn.Parameter,
    gradient: torch.Tensor,
    loss: Callable[[], float],
    step: float = STEP,
) -> float:
    """How far `gradient` is from that of `loss` by `parameter`, over its own size: root mean square over
    random directions, central differences. 0.01 or less where it is right, unless a corner lies within the
    step; infinite where a loss is not finite. The parameter is left as it was.
    """
    norm, size = gradient.double().norm().item(), abs(loss())
    if not norm or not size:
        return math.inf
    generator = torch.Generator().manual_seed(0)
    was, errors, expected = parameter.detach().clone(), 0.0, 0.0
    for _ in range(_DIRECTIONS):
        drawn = torch.randn(gradient.shape, generator=generator, dtype=torch.float32)
        # By (gradient, direction) about as large as the gradient's norm.
        moved = drawn.to(parameter.device, parameter.dtype) * (step * size / norm)
        found = 0.0
        for sign in (1, -1):
            with torch.no_grad():
                parameter.copy_(was + sign * moved)
            found += sign * loss() / 2
        predicted = torch.dot(gradient.double().flatten(), moved.double().flatten()).item()
        errors += (predicted - found) ** 2
        expected += predicted**2
    with torch.no_grad():
        parameter.copy_(was)
    error = math.sqrt(errors / expected) if expected else math.inf
    return error if math.isfinite(error) else math.inf
