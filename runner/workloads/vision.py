"""ResNet-50 and ViT-B/16 of transformers, built from their configurations with random weights."""

from __future__ import annotations

import torch
from transformers import (
    ResNetConfig,
    ResNetForImageClassification,
    ViTConfig,
    ViTForImageClassification,
)

from compilewatch.runner.workloads.built import INFERENCE, Built
from compilewatch.runner.workloads.calibration import calibrate_batch_norm


def resnet50() -> torch.nn.Module:
    """25.56 million parameters; the defaults of ResNetConfig are ResNet-50."""
    model: torch.nn.Module = ResNetForImageClassification(ResNetConfig(num_labels=1000))
    return model


def vit_b16() -> torch.nn.Module:
    """86.57 million parameters; the defaults of ViTConfig are ViT-B/16 at 224 pixels."""
    model: torch.nn.Module = ViTForImageClassification(ViTConfig(num_labels=1000))
    return model


def build_resnet50(*, batch_size: int, image_size: int, device: torch.device, dtype: torch.dtype) -> Built:
    """Inference on (batch_size, 3, image_size, image_size), weights and images channels last."""
    with device:
        model = resnet50()
        images = torch.randn(batch_size, 3, image_size, image_size)
    calibrate_batch_norm(model, images)
    model = model.to(dtype).to(memory_format=torch.channels_last).eval()  # type: ignore[call-overload]
    inputs = (images.to(dtype).to(memory_format=torch.channels_last),)
    return Built(model_or_fn=model, inputs=inputs, task=INFERENCE, regions=("ResNetBottleNeckLayer",))


def build_vit(*, batch_size: int, image_size: int, device: torch.device, dtype: torch.dtype) -> Built:
    """Inference on (batch_size, 3, image_size, image_size)."""
    with device:
        model = vit_b16()
    model = model.to(dtype).eval()
    inputs = (torch.randn(batch_size, 3, image_size, image_size, device=device, dtype=dtype),)
    return Built(model_or_fn=model, inputs=inputs, task=INFERENCE, regions=("ViTLayer",))
