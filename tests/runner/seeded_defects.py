"""Compiled results with one known defect each, for the numeric check on any device."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn
from torch.nn import functional

from compilewatch.runner.workloads.built import Built

WIDTH = 1024


class Network(nn.Module):
    """A product, a batch norm over features of small variance, a product: outputs of order 1."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(WIDTH, WIDTH)
        self.norm = nn.BatchNorm1d(WIDTH, eps=1e-5)
        self.second = nn.Linear(WIDTH, WIDTH)
        nn.init.normal_(self.first.weight, std=0.03 * WIDTH**-0.5)
        nn.init.normal_(self.first.bias, std=0.01)
        nn.init.normal_(self.second.weight, std=WIDTH**-0.5)
        self.norm.running_var.fill_(1e-3)
        self.norm.running_mean.copy_(self.first.bias.detach())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch, WIDTH) -> the same."""
        return self.second(self.norm(self.first(x)))


def build(device: torch.device, dtype: torch.dtype) -> Built:
    """Inference on 64 rows, the same each time."""
    torch.manual_seed(0)
    model = Network().to(device, dtype).eval()
    x = torch.randn(64, WIDTH, device=device, dtype=dtype)
    return Built(model_or_fn=model, inputs=(x,))


def _low_precision_sum(model: Network) -> Callable[[torch.Tensor], torch.Tensor]:
    """The second product's sum is kept in bfloat16, 16 terms at a time."""

    def call(x: torch.Tensor) -> torch.Tensor:
        hidden = model.norm(model.first(x))
        total = model.second.bias.bfloat16().expand(len(x), WIDTH)
        for begin in range(0, WIDTH, 16):
            part = slice(begin, begin + 16)
            weight = model.second.weight[:, part].bfloat16()
            total = (total + hidden[:, part].bfloat16() @ weight.T).bfloat16()
        return total.to(x.dtype)

    return call


def _dropped_bias(model: Network) -> Callable[[torch.Tensor], torch.Tensor]:
    return lambda x: functional.linear(model.norm(model.first(x)), model.second.weight)


def _wrong_epsilon(model: Network) -> Callable[[torch.Tensor], torch.Tensor]:
    """PyTorch's 1e-5 became TensorFlow's 1e-3."""

    def call(x: torch.Tensor) -> torch.Tensor:
        norm = model.norm
        mean, variance = norm.running_mean, norm.running_var
        return model.second(
            functional.batch_norm(model.first(x), mean, variance, norm.weight, norm.bias, eps=1e-3)
        )

    return call


def _stale_buffer(model: Network) -> Callable[[torch.Tensor], torch.Tensor]:
    """The mean of the batch norm is the one it was made with."""
    stale = torch.zeros_like(model.norm.running_mean)

    def call(x: torch.Tensor) -> torch.Tensor:
        norm = model.norm
        return model.second(
            functional.batch_norm(
                model.first(x), stale, norm.running_var, norm.weight, norm.bias, eps=norm.eps
            )
        )

    return call


DEFECTS = {
    "an accumulation in bfloat16": _low_precision_sum,
    "a dropped bias": _dropped_bias,
    "a wrong epsilon": _wrong_epsilon,
    "a stale buffer": _stale_buffer,
}
