"""Decoding one token after the other with a static key-value cache, in plain torch.

The cache has its full size from the start and is written in place, so that every step has the same shapes and
one graph serves them all; a cache that grows would compile for every length.
"""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from compilewatch.runner.workloads.built import Batch, Built, Stream

VOCABULARY = 1000


class CachedBlock(nn.Module):
    """Causal attention over a cache of `context` positions, then a feed-forward network, both pre-normed."""

    def __init__(self, width: int, heads: int, batch_size: int, context: int) -> None:
        super().__init__()
        self.heads = heads
        self.attention_norm = nn.RMSNorm(width)
        self.query_key_value = nn.Linear(width, 3 * width, bias=False)
        self.projection = nn.Linear(width, width, bias=False)
        self.feed_forward_norm = nn.RMSNorm(width)
        self.expand = nn.Linear(width, 4 * width, bias=False)
        self.contract = nn.Linear(4 * width, width, bias=False)
        shape = (batch_size, heads, context, width // heads)
        self.register_buffer("keys", torch.zeros(shape), persistent=False)
        self.register_buffer("values", torch.zeros(shape), persistent=False)

    def forward(self, x: torch.Tensor, positions: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """(batch, new, width) at `positions` (new,), where `mask` (new, context) says what each may see."""
        batch, new, width = x.shape
        joint = self.query_key_value(self.attention_norm(x))
        query, key, value = joint.view(batch, new, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        keys = self.keys.index_copy_(2, positions, key)  # type: ignore[operator]
        values = self.values.index_copy_(2, positions, value)  # type: ignore[operator]
        attended = functional.scaled_dot_product_attention(query, keys, values, attn_mask=mask)
        x = x + self.projection(attended.transpose(1, 2).reshape(batch, new, width))
        expanded = functional.silu(self.expand(self.feed_forward_norm(x)))
        contracted: torch.Tensor = self.contract(expanded)
        return x + contracted


class Decoder(nn.Module):
    """Token ids at positions in, logits of the next token out."""

    def __init__(self, width: int, heads: int, layers: int, batch_size: int, context: int) -> None:
        super().__init__()
        self.context = context
        self.embedding = nn.Embedding(VOCABULARY, width)
        self.places = nn.Embedding(context, width)
        self.blocks = nn.ModuleList(CachedBlock(width, heads, batch_size, context) for _ in range(layers))
        self.norm = nn.RMSNorm(width)
        self.head = nn.Linear(width, VOCABULARY, bias=False)

    def forward(self, tokens: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        """(batch, new) ids at `positions` (new,) -> (batch, VOCABULARY) logits after the last of them."""
        x = self.embedding(tokens) + self.places(positions)
        mask = torch.arange(self.context, device=positions.device) <= positions.unsqueeze(1)
        for block in self.blocks:
            x = block(x, positions, mask)
        logits: torch.Tensor = self.head(self.norm(x[:, -1]))
        return logits


def build(
    *,
    batch_size: int,
    prompt_length: int,
    new_tokens: int,
    device: torch.device,
    dtype: torch.dtype,
    width: int = 64,
    heads: int = 4,
    layers: int = 1,
) -> Built:
    """Inference of `new_tokens` tokens, all in one iteration, after a prompt that is in the cache already.

    The tokens are given, not sampled, so that eager and compiled decode the same text and can be compared.
    """
    model = Decoder(width, heads, layers, batch_size, prompt_length + new_tokens).to(device, dtype).eval()
    tokens = torch.randint(VOCABULARY, (batch_size, prompt_length + new_tokens), device=device)
    return decoding(model, tokens, prompt_length, regions=("CachedBlock",))


def decoding(
    model: nn.Module, tokens: torch.Tensor, prompt_length: int, *, regions: tuple[str, ...]
) -> Built:
    """The decoding of given `tokens` (batch, context), one at a time, the prompt put into the cache first.

    `model` takes (tokens (batch, new), positions (new,)) and keeps its keys and values.
    """
    batch_size, context = tokens.shape
    places = torch.arange(context, device=tokens.device)
    with torch.no_grad():
        model(tokens[:, :prompt_length], places[:prompt_length])
    steps = [
        Batch((tokens[:, at : at + 1].contiguous(), places[at : at + 1].clone()))
        for at in range(prompt_length, context)
    ]
    stream = Stream(batches=lambda: steps, tokens=batch_size * (context - prompt_length))
    return Built(model_or_fn=model, inputs=steps[0].inputs, regions=regions, stream=stream)
