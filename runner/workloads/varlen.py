"""A token encoder over requests of different lengths, with the usual answers to that: pad to the longest of
the batch, to the longest there may be, to a bucket, or compile for any length.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn
from torch.nn import functional

from compilewatch.runner.workloads.built import Batch, Built, Stream
from compilewatch.runner.workloads.lengths import Lengths, padded_length
from compilewatch.runner.workloads.transformer import EncoderBlock

VOCABULARY = 1000


class MaskedBlock(EncoderBlock):
    """The encoder's block, where no token attends to padding."""

    def forward(self, x: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        """(batch, sequence, width) -> the same; `mask` is (batch, 1, 1, sequence), true at tokens."""
        batch, sequence, width = x.shape
        joint = self.query_key_value(self.attention_norm(x))
        query, key, value = joint.view(batch, sequence, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        attended = functional.scaled_dot_product_attention(query, key, value, attn_mask=mask)
        x = x + self.projection(attended.transpose(1, 2).reshape(batch, sequence, width))
        expanded = functional.gelu(self.expand(self.feed_forward_norm(x)))
        contracted: torch.Tensor = self.contract(expanded)
        return x + contracted


class TokenEncoder(nn.Module):
    """Token ids in, one vector per sequence out: the mean over its tokens, whatever the padding."""

    def __init__(self, width: int, heads: int, layers: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, width)
        self.blocks = nn.ModuleList(MaskedBlock(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)

    def forward(self, tokens: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """(batch, sequence) ids and booleans, true at tokens -> (batch, width)."""
        x = self.embedding(tokens)
        for block in self.blocks:
            x = block(x, mask[:, None, None, :])
        weights = mask.to(x.dtype).unsqueeze(-1)
        pooled: torch.Tensor = (self.norm(x) * weights).sum(1) / weights.sum(1)
        return pooled


def build(
    *,
    batch_size: int,
    longest: int,
    batches: int,
    policy: str,
    device: torch.device,
    dtype: torch.dtype,
    width: int = 64,
    heads: int = 4,
    layers: int = 1,
    median: int = 48,
    sigma: float = 0.6,
    shortest: int = 8,
    seed: int = 0,
    buckets: Sequence[int] = (32, 64, 128, 256),
) -> Built:
    """Inference over `batches` batches of (batch_size, up to `longest`) token ids, all in one iteration.

    `policy` says how long each batch is made, see `lengths.padded_length`; `dynamic` also marks the sequence
    dimension, so that one graph is compiled for every length.
    """
    model = TokenEncoder(width, heads, layers).to(device, dtype).eval()
    lengths_of = Lengths(batches, batch_size, median, sigma, shortest, longest, seed).drawn()
    inputs = [
        _batch(lengths, padded_length(lengths, policy, buckets, longest), device) for lengths in lengths_of
    ]
    stream = Stream(
        batches=lambda: inputs,
        policy=policy,
        marked_dimension=1 if policy == "dynamic" else None,
        tokens=sum(map(sum, lengths_of)),
        padded_tokens=sum(batch.inputs[0].numel() for batch in inputs),
    )
    return Built(model_or_fn=model, inputs=inputs[0].inputs, regions=("MaskedBlock",), stream=stream)


def _batch(lengths: Sequence[int], padded: int, device: torch.device) -> Batch:
    mask = torch.arange(padded) < torch.tensor(lengths).unsqueeze(1)
    tokens = torch.randint(VOCABULARY, mask.shape) * mask
    return Batch((tokens.to(device), mask.to(device)))
