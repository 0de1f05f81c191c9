"""The encoder with weights and activations of its linear layers in 8 bits, by torchao."""

from __future__ import annotations

import torch

from compilewatch.runner.workloads.built import INFERENCE, Built
from compilewatch.runner.workloads.eight_bits import EIGHT_BIT_TOLERANCE, quantise
from compilewatch.runner.workloads.transformer import Encoder


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
    model = Encoder(width, heads, layers).to(device, dtype).eval()
    quantise(model, "int8")
    inputs = (torch.randn(batch_size, sequence_length, width, device=device, dtype=dtype),)
    return Built(
        model_or_fn=model,
        inputs=inputs,
        task=INFERENCE,
        regions=("EncoderBlock",),
        tolerance=EIGHT_BIT_TOLERANCE,
    )
