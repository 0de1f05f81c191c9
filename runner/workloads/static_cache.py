"""Decoding with the static key-value cache of transformers: a Llama built from its configuration."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from transformers import LlamaConfig, LlamaForCausalLM, StaticCache

from compilewatch.runner.workloads.built import Built
from compilewatch.runner.workloads.decode import decoding


def llama(layers: int) -> Any:
    """1.10 billion parameters with 22 `layers`: the shape of TinyLlama."""
    config = LlamaConfig(
        vocab_size=32_000,
        hidden_size=2048,
        intermediate_size=5632,
        num_hidden_layers=layers,
        num_attention_heads=32,
        num_key_value_heads=4,
        max_position_embeddings=2048,
    )
    return LlamaForCausalLM(config)


class CachedLlama(nn.Module):
    """The model with its cache, so that one call takes tokens and their positions and returns logits."""

    def __init__(self, model: Any, cache: Any) -> None:
        super().__init__()
        self.model = model
        self.cache = cache

    def _apply(self, fn: Callable[[torch.Tensor], torch.Tensor], recurse: bool = True) -> CachedLlama:
        """What moves or casts the model does so with the cache, which is no module."""
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        for layer in self.cache.layers:
            layer.keys, layer.values = fn(layer.keys), fn(layer.values)
            layer.dtype, layer.device = layer.keys.dtype, layer.keys.device
        return self

    def forward(self, tokens: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        """(batch, new) ids at `positions` (new,) -> (batch, vocabulary) logits after the last of them."""
        for layer in self.cache.layers:
            # From release 5 on a layer counts by itself and would run past its end in the second iteration.
            if layer.is_initialized and isinstance(getattr(layer, "cumulative_length", None), torch.Tensor):
                layer.cumulative_length.copy_(positions[0])
        output = self.model(
            tokens,
            past_key_values=self.cache,
            position_ids=positions.unsqueeze(0),
            cache_position=positions,
            use_cache=True,
        )
        logits: torch.Tensor = output.logits[:, -1]
        return logits


def build(
    *,
    batch_size: int,
    prompt_length: int,
    new_tokens: int,
    device: torch.device,
    dtype: torch.dtype,
    layers: int = 22,
) -> Built:
    """Inference of `new_tokens` tokens, all in one iteration, after a prompt that is in the cache already.

    The tokens are given, not sampled, so that eager and compiled decode the same text and can be compared.
    """
    with device:
        model = llama(layers)
    model = model.to(dtype).eval()
    context = prompt_length + new_tokens
    cached = CachedLlama(model, StaticCache(config=model.config, max_cache_len=context)).eval()
    tokens = torch.randint(model.config.vocab_size, (batch_size, context), device=device)
    return decoding(cached, tokens, prompt_length, regions=("LlamaDecoderLayer",))
