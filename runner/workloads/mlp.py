"""Linear layers with GELU: matrix products, with little between them to fuse."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from compilewatch.runner.workloads.built import INFERENCE, TRAINING, Built
from compilewatch.runner.workloads.calibration import keep_variance


def mlp(width: int, layers: int, classes: int) -> nn.Sequential:
    """`layers` of (width -> width, GELU), then width -> classes."""
    hidden: list[nn.Module] = []
    for _ in range(layers):
        hidden += [nn.Linear(width, width), nn.GELU()]
    return nn.Sequential(*hidden, nn.Linear(width, classes))


def build(
    *, batch_size: int, width: int, layers: int, classes: int, device: torch.device, dtype: torch.dtype
) -> Built:
    """Inference on (batch_size, width)."""
    model = mlp(width, layers, classes)
    keep_variance(model)
    model = model.to(device, dtype).eval()
    inputs = (torch.randn(batch_size, width, device=device, dtype=dtype),)
    return Built(model_or_fn=model, inputs=inputs, task=INFERENCE)


def build_training(
    *, batch_size: int, width: int, layers: int, classes: int, device: torch.device, dtype: torch.dtype
) -> Built:
    """A training step on (batch_size, width) with cross entropy and SGD."""
    model = mlp(width, layers, classes).to(device, dtype).train()
    inputs = (torch.randn(batch_size, width, device=device, dtype=dtype),)
    labels = torch.randint(classes, (batch_size,), device=device)
    return Built(
        model_or_fn=model,
        inputs=inputs,
        task=TRAINING,
        loss=lambda logits: functional.cross_entropy(logits, labels),
        optimizer=lambda parameters: torch.optim.SGD(parameters, lr=1e-3, momentum=0.9),
    )
