"""A denoising U-Net in plain torch (Ho et al., arXiv 2006.11239, appendix B), without attention."""

from __future__ import annotations

import math

import torch
from torch import nn
from torch.nn import functional

from compilewatch.runner.workloads.built import INFERENCE, Built


class ResidualBlock(nn.Module):
    """Group norm, SiLU and convolution twice, with the timestep added between, around a residual."""

    def __init__(self, inner: int, outer: int, embedding: int) -> None:
        super().__init__()
        self.first_norm = nn.GroupNorm(8, inner)
        self.first = nn.Conv2d(inner, outer, 3, padding=1)
        self.time = nn.Linear(embedding, outer)
        self.second_norm = nn.GroupNorm(8, outer)
        self.second = nn.Conv2d(outer, outer, 3, padding=1)
        self.skip = nn.Conv2d(inner, outer, 1) if inner != outer else nn.Identity()

    def forward(self, x: torch.Tensor, time: torch.Tensor) -> torch.Tensor:
        """(batch, inner, h, w) and (batch, embedding) -> (batch, outer, h, w)."""
        y = self.first(functional.silu(self.first_norm(x)))
        y = y + self.time(time)[:, :, None, None]
        result: torch.Tensor = self.skip(x) + self.second(functional.silu(self.second_norm(y)))
        return result


class UNet(nn.Module):
    """`levels` resolutions down and up again, doubling the channels at each, with skip connections."""

    def __init__(self, channels: int, levels: int) -> None:
        super().__init__()
        self.channels = channels
        embedding = 4 * channels
        widths = [channels * 2**level for level in range(levels)]
        self.embed = nn.Sequential(nn.Linear(channels, embedding), nn.SiLU(), nn.Linear(embedding, embedding))
        self.stem = nn.Conv2d(3, channels, 3, padding=1)
        self.down = nn.ModuleList(
            ResidualBlock(widths[max(level - 1, 0)], widths[level], embedding) for level in range(levels)
        )
        self.middle = ResidualBlock(widths[-1], widths[-1], embedding)
        self.up = nn.ModuleList(
            ResidualBlock(2 * width, max(width // 2, channels), embedding) for width in reversed(widths)
        )
        self.head = nn.Sequential(nn.GroupNorm(8, channels), nn.SiLU(), nn.Conv2d(channels, 3, 3, padding=1))

    def forward(self, x: torch.Tensor, timestep: torch.Tensor) -> torch.Tensor:
        """(batch, 3, h, w) and (batch,) -> (batch, 3, h, w); h and w are multiples of 2 ** levels."""
        time = self.embed(self._sinusoids(timestep).to(x.dtype))
        x = self.stem(x)
        skipped = []
        for block in self.down:
            x = block(x, time)
            skipped.append(x)
            x = functional.avg_pool2d(x, 2)
        x = self.middle(x, time)
        for block in self.up:
            x = functional.interpolate(x, scale_factor=2.0, mode="nearest")
            x = block(torch.cat([x, skipped.pop()], dim=1), time)
        noise: torch.Tensor = self.head(x)
        return noise

    def _sinusoids(self, timestep: torch.Tensor) -> torch.Tensor:
        """Vaswani et al., arXiv 1706.03762, section 3.5: (batch,) -> (batch, channels)."""
        half = self.channels // 2
        exponents = torch.arange(half, device=timestep.device) / half
        angles = timestep[:, None] * torch.exp(-math.log(10_000.0) * exponents)
        return torch.cat([angles.sin(), angles.cos()], dim=-1)


def build(
    *,
    batch_size: int,
    image_size: int,
    channels: int,
    levels: int,
    device: torch.device,
    dtype: torch.dtype,
) -> Built:
    """One denoising step of (batch_size, 3, image_size, image_size)."""
    model = UNet(channels, levels).to(device, dtype).eval()
    inputs = (
        torch.randn(batch_size, 3, image_size, image_size, device=device, dtype=dtype),
        torch.full((batch_size,), 500, device=device),
    )
    return Built(model_or_fn=model, inputs=inputs, task=INFERENCE, regions=("ResidualBlock",))
