"""Ten small models that are compiled right, of kinds that each part of the compiler works on."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn
from torch.nn import functional

from compilewatch.runner.workloads.built import TRAINING, Built


def _attention() -> Built:
    def attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return functional.scaled_dot_product_attention(q, k, v, is_causal=True)

    return Built(attend, tuple(torch.randn(3, 1, 2, 8, 16)))


def _written_in_place() -> Built:
    def write(x: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        return x.clone().index_add_(0, rows, x).mul_(0.5)

    return Built(write, (torch.randn(16, 8), torch.arange(16) % 5))


def _training() -> Built:
    model = nn.Sequential(nn.Linear(16, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 1))
    return Built(model, (torch.randn(8, 16),), TRAINING)


def _convolution() -> Built:
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.SiLU(), nn.MaxPool2d(2)).eval()
    return Built(model, (torch.randn(2, 3, 12, 12),))


def _of(step: Callable[[torch.Tensor], torch.Tensor]) -> Callable[[], Built]:
    return lambda: Built(step, (torch.randn(16, 32),))


RIGHT: dict[str, Callable[[], Built]] = {
    "gelu": _of(lambda x: functional.gelu(x) * torch.sin(x) + x.mean()),
    "softmax": _of(lambda x: torch.softmax(x, -1) @ x.t()),
    "norm": _of(lambda x: functional.layer_norm(x, (32,)).tanh()),
    "scan": _of(lambda x: x.cumsum(0) / torch.arange(1, 17)[:, None]),
    "branches": _of(lambda x: torch.where(x > 0, x.exp(), x.cos()).flip(1)),
    "half": _of(lambda x: (x.bfloat16() @ x.bfloat16().t()).relu().float()),
    "attention": _attention,
    "in place": _written_in_place,
    "training": _training,
    "convolution": _convolution,
}
