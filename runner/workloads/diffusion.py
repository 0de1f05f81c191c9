"""The U-Net of Stable Diffusion 1 of diffusers, built from its configuration with random weights."""

from __future__ import annotations

import torch
from diffusers import UNet2DConditionModel

from compilewatch.runner.workloads.built import INFERENCE, Built

_TEXT_WIDTH = 768


def sd_unet() -> torch.nn.Module:
    """859.52 million parameters (Rombach et al., arXiv 2112.10752; the sizes of Stable Diffusion 1)."""
    model: torch.nn.Module = UNet2DConditionModel(sample_size=64, cross_attention_dim=_TEXT_WIDTH)
    return model


def build_sd_unet(
    *, batch_size: int, latent_size: int, text_length: int, device: torch.device, dtype: torch.dtype
) -> Built:
    """One denoising step of (batch_size, 4, latent_size, latent_size) latents with text conditioning.

    The timestep is a tensor: a Python number would be a constant of the graph and recompile at each step.
    """
    with device:
        model = sd_unet()
    model = model.to(dtype).to(memory_format=torch.channels_last).eval()  # type: ignore[call-overload]
    latents = torch.randn(batch_size, 4, latent_size, latent_size, device=device, dtype=dtype)
    inputs = (
        latents.to(memory_format=torch.channels_last),
        torch.full((batch_size,), 500, device=device),
        torch.randn(batch_size, text_length, _TEXT_WIDTH, device=device, dtype=dtype),
    )
    return Built(model_or_fn=model, inputs=inputs, task=INFERENCE, regions=("BasicTransformerBlock",))
