"""A small residual network: convolution, batch norm, ReLU and addition, the operations of a ResNet."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from compilewatch.runner.workloads.built import INFERENCE, Built


class Bottleneck(nn.Module):
    """1x1, 3x3 and 1x1 convolutions around a residual addition (He et al., arXiv 1512.03385, figure 5)."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        inner = channels // 2
        self.layers = nn.Sequential(
            nn.Conv2d(channels, inner, 1, bias=False),
            nn.BatchNorm2d(inner),
            nn.ReLU(),
            nn.Conv2d(inner, inner, 3, padding=1, bias=False),
            nn.BatchNorm2d(inner),
            nn.ReLU(),
            nn.Conv2d(inner, channels, 1, bias=False),
            nn.BatchNorm2d(channels),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch, channels, height, width) -> the same."""
        return functional.relu(x + self.layers(x))


def residual_network(channels: int, blocks: int, classes: int) -> nn.Sequential:
    """A stem that halves height and width, `blocks` bottlenecks, a mean over pixels and a classifier."""
    return nn.Sequential(
        nn.Conv2d(3, channels, 3, stride=2, padding=1, bias=False),
        nn.BatchNorm2d(channels),
        nn.ReLU(),
        *(Bottleneck(channels) for _ in range(blocks)),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(channels, classes),
    )


def build(
    *,
    batch_size: int,
    image_size: int,
    channels: int,
    blocks: int,
    device: torch.device,
    dtype: torch.dtype,
    classes: int = 10,
) -> Built:
    """Inference on (batch_size, 3, image_size, image_size), weights and images channels last.

    In the default layout Inductor would convert every weight again at every call.
    """
    model = residual_network(channels, blocks, classes).to(device, dtype).eval()
    model = model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    images = torch.randn(batch_size, 3, image_size, image_size, device=device, dtype=dtype)
    inputs = (images.to(memory_format=torch.channels_last),)
    return Built(model_or_fn=model, inputs=inputs, task=INFERENCE, regions=("Bottleneck",))
