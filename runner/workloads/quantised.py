"""The encoder with weights and activations of its linear layers in 8 bits, by torchao."""

from __future__ import annotations

import torch

from compilewatch.runner.workloads.built import INFERENCE, Built
from compilewatch.runner.workloads.transformer import Encoder

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

    model = Encoder(width, heads, layers).to(device, dtype).eval()
    quantize_(model, Int8DynamicActivationInt8WeightConfig())
    inputs = (torch.randn(batch_size, sequence_length, width, device=device, dtype=dtype),)
    return Built(
        model_or_fn=model, inputs=inputs, task=INFERENCE, regions=("EncoderBlock",), tolerance=_TOLERANCE
    )
