"""The encoder with weights and activations of its linear layers in 8 bits, by torchao."""

from __future__ import annotations

from dataclasses import replace

import torch

from runner.workloads import transformer
from runner.workloads.built import Built

# An activation that is rounded the other way is off by one of 127 levels of its token's largest: eager and
# compiled results of six blocks, of standard deviation 1, differ by up to 0.07.
_TOLERANCE = 0.1


def build(
    *,
    batch_size: int,
    sequence_length: int,
    width: int,
    heads: int,
    layers: int,
    device: torch.device,
    dtype: torch.dtype,
) -> Built:
    """Inference on (batch_size, sequence_length, width): weights are quantised once, activations in each step
    (`Int8DynamicActivationInt8WeightConfig`); the rest computes in `dtype`.
    """
    from torchao.quantization import Int8DynamicActivationInt8WeightConfig, quantize_

    built = transformer.build(
        batch_size=batch_size,
        sequence_length=sequence_length,
        width=width,
        heads=heads,
        layers=layers,
        device=device,
        dtype=dtype,
    )
    quantize_(built.model_or_fn, Int8DynamicActivationInt8WeightConfig())
    return replace(built, tolerance=_TOLERANCE)
