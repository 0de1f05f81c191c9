"""A pre-norm transformer encoder of single operations.

`torch.nn.TransformerEncoder` is not used: in eval mode without gradients it takes a fused fast path of one
operation per layer, which leaves a compiler nothing to do and reads as a speedup of 1.
"""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from compilewatch.runner.workloads.built import INFERENCE, Built


class EncoderBlock(nn.Module):
    """Self-attention and a feed-forward network of four times the width, each pre-normed and residual."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.attention_norm = nn.LayerNorm(width)
        self.query_key_value = nn.Linear(width, 3 * width)
        self.projection = nn.Linear(width, width)
        self.feed_forward_norm = nn.LayerNorm(width)
        self.expand = nn.Linear(width, 4 * width)
        self.contract = nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch, sequence, width) -> the same."""
        batch, sequence, width = x.shape
        joint = self.query_key_value(self.attention_norm(x))
        query, key, value = joint.view(batch, sequence, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        attended = functional.scaled_dot_product_attention(query, key, value)
        x = x + self.projection(attended.transpose(1, 2).reshape(batch, sequence, width))
        expanded = functional.gelu(self.expand(self.feed_forward_norm(x)))
        contracted: torch.Tensor = self.contract(expanded)
        return x + contracted


class Encoder(nn.Module):
    """A stack of blocks and a last norm."""

    def __init__(self, width: int, heads: int, layers: int) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(EncoderBlock(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch, sequence, width) -> the same."""
        for block in self.blocks:
            x = block(x)
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
) -> Built:
    """Inference on (batch_size, sequence_length, width)."""
    model = Encoder(width, heads, layers).to(device, dtype).eval()
    inputs = (torch.randn(batch_size, sequence_length, width, device=device, dtype=dtype),)
    return Built(model_or_fn=model, inputs=inputs, task=INFERENCE, regions=("EncoderBlock",))
