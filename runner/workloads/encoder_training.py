"""Training steps of the encoder: plain, with activation checkpointing, with a compiled optimizer."""

from __future__ import annotations

import torch
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from compilewatch.runner.workloads.built import TRAINING, Built
from compilewatch.runner.workloads.transformer import Encoder


class CheckpointedEncoder(Encoder):
    """Keeps the input of each block and computes its inside again in the backward pass: memory for time."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch, sequence, width) -> the same."""
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False)
        normed: torch.Tensor = self.norm(x)
        return normed


def build(
    *,
    batch_size: int,
    sequence_length: int,
    width: int,
    heads: int,
    layers: int,
    device: torch.device,
    dtype: torch.dtype,
    checkpointing: bool = False,
    compile_optimizer: bool = False,
) -> Built:
    """A step that learns to reproduce (batch_size, sequence_length, width), with AdamW.

    Weights stay in float32; a 16-bit `dtype` is that of autocast, and float16 scales the loss.
    """
    kind = CheckpointedEncoder if checkpointing else Encoder
    model = kind(width, heads, layers).to(device).train()
    inputs = torch.randn(batch_size, sequence_length, width, device=device)
    return Built(
        model_or_fn=model,
        inputs=(inputs,),
        task=TRAINING,
        loss=lambda output: functional.mse_loss(output.float(), inputs),
        optimizer=lambda parameters: torch.optim.AdamW(parameters, lr=1e-4),
        autocast_dtype=dtype if dtype.itemsize == 2 else None,
        compile_optimizer=compile_optimizer,
        regions=("EncoderBlock",),
    )
