"""What a compiler meets beside plain operations: FlexAttention, an operator of one's own, random numbers."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn
from torch.nn import functional
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

from compilewatch.runner.workloads.built import INFERENCE, TRAINING, Built


class FlexAttention(nn.Module):
    """Causal attention with a slope per head (ALiBi, Press et al., arXiv 2108.12409) as FlexAttention.

    Compiled it is one fused kernel, in eager the whole matrix of scores.
    """

    def __init__(self, width: int, heads: int, sequence_length: int, device: torch.device) -> None:
        super().__init__()
        self.heads = heads
        self.query_key_value = nn.Linear(width, 3 * width)
        self.projection = nn.Linear(width, width)
        self.register_buffer("slopes", 2.0 ** (-8.0 * torch.arange(1, heads + 1) / heads))
        self.mask = create_block_mask(
            lambda _batch, _head, query, key: query >= key,
            None,
            None,
            sequence_length,
            sequence_length,
            device=str(device),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch, sequence, width) -> the same."""
        batch, sequence, width = x.shape
        joint = self.query_key_value(x)
        query, key, value = joint.view(batch, sequence, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        slopes = self.slopes
        assert isinstance(slopes, torch.Tensor)

        def biased(
            score: torch.Tensor,
            _batch: torch.Tensor,
            head: torch.Tensor,
            query_at: torch.Tensor,
            key_at: torch.Tensor,
        ) -> torch.Tensor:
            return score + slopes[head] * (key_at - query_at)

        attended = flex_attention(query, key, value, score_mod=biased, block_mask=self.mask)
        assert isinstance(attended, torch.Tensor)
        projected: torch.Tensor = self.projection(attended.transpose(1, 2).reshape(batch, sequence, width))
        return projected


def build_flex_attention(
    *,
    batch_size: int,
    sequence_length: int,
    width: int,
    heads: int,
    device: torch.device,
    dtype: torch.dtype,
) -> Built:
    """Inference on (batch_size, sequence_length, width)."""
    model = FlexAttention(width, heads, sequence_length, device).to(device, dtype).eval()
    inputs = (torch.randn(batch_size, sequence_length, width, device=device, dtype=dtype),)
    return Built(model_or_fn=model, inputs=inputs, task=INFERENCE)


def _rms_norm() -> Callable[[torch.Tensor, torch.Tensor], torch.Tensor]:
    """RMSNorm over the last dimension, as one operator that the compiler calls and does not look into."""

    def norm(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        return functional.rms_norm(x, (x.shape[-1],), weight)

    operator = torch.library.custom_op("compilewatch::rms_norm", norm, mutates_args=())
    operator.register_fake(lambda x, _weight: torch.empty_like(x))
    return operator


RMS_NORM = _rms_norm()


def normed_gelu(x: torch.Tensor, scale: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """Element-wise operations on both sides of the operator: two kernels, and none across it."""
    y = functional.gelu(x * scale)
    return x + functional.silu(RMS_NORM(y, weight)) * scale


def build_custom_op(*, batch_size: int, width: int, device: torch.device, dtype: torch.dtype) -> Built:
    """`batch_size` rows of `width` numbers."""
    rows = torch.randn(batch_size, width, device=device, dtype=dtype)
    scale, weight = torch.randn(2, width, device=device, dtype=dtype).unbind(0)
    return Built(model_or_fn=normed_gelu, inputs=(rows, scale, weight), task="function")


def build_dropout_training(
    *, batch_size: int, width: int, classes: int, device: torch.device, dtype: torch.dtype
) -> Built:
    """A training step on (batch_size, width) with dropout of one half, cross entropy and SGD."""
    model = nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.Dropout(0.5), nn.Linear(width, classes)).to(
        device, dtype
    )
    inputs = (torch.randn(batch_size, width, device=device, dtype=dtype),)
    labels = torch.randint(classes, (batch_size,), device=device)
    return Built(
        model_or_fn=model.train(),
        inputs=inputs,
        task=TRAINING,
        loss=lambda logits: functional.cross_entropy(logits, labels),
    )
