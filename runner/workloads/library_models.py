"""Models of transformers, timm and torchvision with random weights. Nothing is downloaded."""

from __future__ import annotations

import importlib
import inspect
from typing import Any

import torch

from compilewatch.runner.workloads.built import Built
from compilewatch.runner.workloads.calibration import calibrate_batch_norm


def build_hf(
    *,
    config: dict[str, Any],
    batch_size: int,
    device: torch.device,
    dtype: torch.dtype,
    sequence_length: int | None = None,
    image_size: int | None = None,
) -> tuple[torch.nn.Module, dict[str, torch.Tensor]]:
    """The model of a configuration, of the architecture it names, else without a head.

    Takes (batch_size, sequence_length) token ids or (batch_size, channels, image_size, image_size). Raises
    ValueError for a model with other inputs.
    """
    import transformers

    settings = transformers.AutoConfig.for_model(**config)
    if hasattr(settings, "use_cache"):
        settings.use_cache = False
    with device:
        model = _architecture(transformers, settings)
        inputs = _inputs(model, settings, batch_size, sequence_length, image_size)
    if image_size is not None:
        calibrate_batch_norm(model, *inputs.values())
    model = model.to(dtype).eval()
    return model, {
        key: value.to(dtype) if value.is_floating_point() else value for key, value in inputs.items()
    }


def _architecture(transformers: Any, settings: Any) -> Any:
    for name in settings.architectures or ():
        kind = getattr(transformers, name, None)
        if isinstance(kind, type) and issubclass(kind, transformers.PreTrainedModel):
            return kind(settings)
    return transformers.AutoModel.from_config(settings, trust_remote_code=False)


def _inputs(
    model: Any, settings: Any, batch_size: int, sequence_length: int | None, image_size: int | None
) -> dict[str, torch.Tensor]:
    if model.main_input_name == "input_ids" and sequence_length is not None:
        tokens = torch.randint(settings.vocab_size, (batch_size, sequence_length))
        return {"input_ids": tokens} | (
            {"decoder_input_ids": tokens.clone()} if settings.is_encoder_decoder else {}
        )
    if model.main_input_name == "pixel_values" and image_size is not None:
        channels = getattr(settings, "num_channels", 3)
        return {"pixel_values": torch.randn(batch_size, channels, image_size, image_size)}
    raise ValueError(
        f"{type(model).__name__} takes {model.main_input_name}, which compilewatch cannot make of "
        f"{'a sequence length' if image_size is None else 'an image size'}; write a builder for it."
    )


def build_timm(
    *, model: str, batch_size: int, image_size: int, device: torch.device, dtype: torch.dtype
) -> Built:
    """A model of timm on (batch_size, 3, image_size, image_size). Raises ValueError for another size."""
    timm = _imported("timm")
    with device:
        made = timm.create_model(model, pretrained=False)
    wanted = made.pretrained_cfg
    if wanted.get("fixed_input_size") and wanted["input_size"][-1] != image_size:
        size = wanted["input_size"][-1]
        raise ValueError(f"{model} takes images of {size} pixels: measure timm:{model}@i{size}.")
    return _of_images(made, batch_size, image_size, device, dtype)


def build_torchvision(
    *, model: str, batch_size: int, image_size: int, device: torch.device, dtype: torch.dtype
) -> Built:
    """A model of torchvision on (batch_size, 3, image_size, image_size)."""
    models = _imported("torchvision").models
    builder = models.get_model_builder(model)
    # Those with a backbone would fetch its weights; those with auxiliary outputs warn of slow initial values.
    wanted = {"weights": None, "weights_backbone": None, "init_weights": True}
    arguments = {key: value for key, value in wanted.items() if key in inspect.signature(builder).parameters}
    with device:
        made = builder(**arguments)
    return _of_images(made, batch_size, image_size, device, dtype)


def _imported(package: str) -> Any:
    """`package`, or one sentence where torchvision's operators are built for another torch."""
    try:
        return importlib.import_module(package)
    except RuntimeError as error:
        raise ImportError(
            f"torchvision does not fit torch {torch.__version__} ({error}); install the build made for it."
        ) from error


def _of_images(
    model: torch.nn.Module, batch_size: int, image_size: int, device: torch.device, dtype: torch.dtype
) -> Built:
    images = torch.randn(batch_size, 3, image_size, image_size, device=device)
    calibrate_batch_norm(model, images)
    return Built(model_or_fn=model.to(dtype).eval(), inputs=(images.to(dtype),))
