"""What stands between the matrix products of a transformer, written as single element-wise operations."""

from __future__ import annotations

import torch

from compilewatch.runner.workloads.built import FUNCTION, Built


def fused_candidate(
    x: torch.Tensor, residual: torch.Tensor, bias: torch.Tensor, weight: torch.Tensor, shift: torch.Tensor
) -> torch.Tensor:
    """Bias, tanh-GELU, residual addition and layer norm: memory-bound, and one loop once it is fused.

    `x` and `residual` are (rows, width), the others (width,).
    """
    y = x + bias
    # Hendrycks and Gimpel, Gaussian Error Linear Units, arXiv 1606.08415, section 2.
    y = 0.5 * y * (1.0 + torch.tanh(0.7978845608028654 * (y + 0.044715 * y * y * y)))
    y = y + residual
    mean = y.mean(-1, keepdim=True)
    centred = y - mean
    variance = (centred * centred).mean(-1, keepdim=True)
    return centred * torch.rsqrt(variance + 1e-5) * weight + shift


def build(*, batch_size: int, width: int, device: torch.device, dtype: torch.dtype) -> Built:
    """`batch_size` rows of `width` numbers."""
    rows = torch.randn(2, batch_size, width, device=device, dtype=dtype)
    vectors = torch.randn(3, width, device=device, dtype=dtype)
    inputs = (*rows.unbind(0), *vectors.unbind(0))
    return Built(model_or_fn=fused_candidate, inputs=inputs, task=FUNCTION)
