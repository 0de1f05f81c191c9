"""The workloads every installation knows. Importing this imports no torch.

Smoke sizes are chosen for two CPU cores: a step of a fraction of a millisecond to a few milliseconds and a
compilation of seconds. Standard sizes are those of the papers and of PyTorch's own benchmarks, for a
datacenter GPU. Every model is built from its configuration with random weights; nothing is downloaded.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from compilewatch.db.records.trial import Task
from compilewatch.runner.catalog.definition import WorkloadDefinition, sequence_tokens
from compilewatch.runner.workloads.lengths import Lengths

_HOW = {
    "none": "each batch padded to its longest sequence",
    "max": "each batch padded to the longest length there may be",
    "buckets": "each batch padded to 32, 64, 128 or 256 tokens",
    "dynamic": "each batch padded to its longest sequence, the length marked as varying",
}


def _varying_tokens(definition: WorkloadDefinition) -> float:
    """Of one iteration, padding not counted."""
    names = ("median", "sigma", "shortest", "seed")
    options: dict[str, Any] = {name: definition.kwargs[name] for name in names if name in definition.kwargs}
    batch_size = definition.batch_size or 1
    longest = definition.shape["longest"]
    return Lengths(definition.kwargs["batches"], batch_size, longest=longest, **options).tokens()


def _decoded_tokens(definition: WorkloadDefinition) -> float:
    return (definition.batch_size or 1) * definition.shape["new_tokens"]


def _varlen(policy: str) -> WorkloadDefinition:
    return WorkloadDefinition(
        name="varlen" if policy == "none" else f"varlen-{policy}",
        summary=f"64 batches of requests of 8 to 256 tokens through an encoder, {_HOW[policy]}",
        target="compilewatch.runner.workloads.varlen:build",
        batch_size=4,
        shape={"longest": 256},
        item="token",
        count_items=_varying_tokens,
        kwargs={"batches": 64, "policy": policy},
        is_stream=True,
    )


STREAMS = (
    *(_varlen(policy) for policy in _HOW),
    WorkloadDefinition(
        name="first-epoch",
        summary="a training epoch of a small CNN end to end: data loader, steps, ragged last batch",
        task=Task.TRAINING,
        target="compilewatch.runner.workloads.epoch:build",
        batch_size=32,
        shape={"images": 265, "image_size": 32},
        item="image",
        count_items=lambda definition: definition.shape["images"],
        is_stream=True,
    ),
    WorkloadDefinition(
        name="decode",
        summary="32 tokens one after the other with a static key-value cache, in plain torch",
        target="compilewatch.runner.workloads.decode:build",
        batch_size=4,
        shape={"prompt_length": 32, "new_tokens": 32},
        item="token",
        count_items=_decoded_tokens,
        is_stream=True,
    ),
    WorkloadDefinition(
        name="llama-decode",
        summary="64 tokens one after the other with transformers' StaticCache: a Llama of 1.1 billion",
        target="compilewatch.runner.workloads.static_cache:build",
        batch_size=1,
        shape={"prompt_length": 512, "new_tokens": 64},
        dtype="bfloat16",
        item="token",
        count_items=_decoded_tokens,
        packages=("transformers",),
        is_stream=True,
    ),
)


_of_rows = partial(WorkloadDefinition, item="row", has_regions=False)
_of_tokens = partial(WorkloadDefinition, item="token", count_items=sequence_tokens)
_of_transformers = partial(WorkloadDefinition, dtype="bfloat16", packages=("transformers",))

_SMOKE = (
    WorkloadDefinition(
        name="cnn",
        summary="convolutions, batch norm and residual additions, the operations of a ResNet",
        target="compilewatch.runner.workloads.cnn:build",
        batch_size=16,
        shape={"image_size": 32},
        item="image",
        kwargs={"channels": 32, "blocks": 1},
    ),
    _of_tokens(
        name="encoder",
        summary="pre-norm transformer encoder with scaled dot product attention",
        target="compilewatch.runner.workloads.transformer:build",
        batch_size=32,
        shape={"sequence_length": 32},
        kwargs={"width": 64, "heads": 4, "layers": 1},
    ),
    _of_rows(
        name="elementwise",
        summary="bias, GELU, residual and layer norm written out as single operations",
        task=Task.FUNCTION,
        target="compilewatch.runner.workloads.elementwise:build",
        batch_size=512,
        shape={"width": 512},
    ),
    _of_rows(
        name="mlp-train",
        summary="training step of linear layers with GELU: forward, loss, backward, optimizer",
        task=Task.TRAINING,
        target="compilewatch.runner.workloads.mlp:build_training",
        batch_size=64,
        shape={"width": 256},
        kwargs={"layers": 3, "classes": 10},
    ),
)

_ENCODER_512 = _of_tokens(
    name="encoder-512",
    summary="the encoder at datacenter size: six blocks, 512 wide",
    target="compilewatch.runner.workloads.transformer:build",
    batch_size=32,
    shape={"sequence_length": 128},
    dtype="bfloat16",
    kwargs={"width": 512, "heads": 8, "layers": 6},
)

_STANDARD = (
    _of_transformers(
        name="resnet50",
        summary="ResNet-50 image classification, channels last",
        target="compilewatch.runner.workloads.vision:build_resnet50",
        batch_size=64,
        shape={"image_size": 224},
        item="image",
    ),
    _of_transformers(
        name="bert-base",
        summary="BERT-base sequence classification",
        target="compilewatch.runner.workloads.language:build_bert",
        batch_size=32,
        shape={"sequence_length": 128},
        item="sequence",
    ),
    _of_transformers(
        name="bert-base-train",
        summary="training step of BERT-base sequence classification",
        task=Task.TRAINING,
        target="compilewatch.runner.workloads.language:build_bert_training",
        batch_size=16,
        shape={"sequence_length": 128},
        item="sequence",
    ),
    _of_transformers(
        name="vit-b16",
        summary="ViT-B/16 image classification",
        target="compilewatch.runner.workloads.vision:build_vit",
        batch_size=64,
        shape={"image_size": 224},
        item="image",
    ),
    _of_transformers(
        name="gpt2",
        summary="GPT-2 forward pass over a whole context, without a key-value cache",
        target="compilewatch.runner.workloads.language:build_gpt2",
        batch_size=8,
        shape={"sequence_length": 512},
        item="token",
        count_items=sequence_tokens,
    ),
    WorkloadDefinition(
        name="sd-unet",
        summary="one denoising step of the Stable Diffusion 1 U-Net, channels last",
        target="compilewatch.runner.workloads.diffusion:build_sd_unet",
        batch_size=2,
        shape={"latent_size": 64, "text_length": 77},
        dtype="float16",
        item="image",
        packages=("diffusers", "transformers"),
    ),
    _ENCODER_512,
    WorkloadDefinition(
        name="lstm-cell",
        summary="an LSTM cell in a Python loop over the sequence, unrolled by the compiler",
        target="compilewatch.runner.workloads.rnn:build_lstm_cell",
        batch_size=16,
        shape={"sequence_length": 32, "width": 256},
        dtype="bfloat16",
        item="sequence",
        kwargs={"hidden": 512},
        has_regions=False,
    ),
    _of_rows(
        name="mlp-4096",
        summary="linear layers with GELU, 4096 wide",
        target="compilewatch.runner.workloads.mlp:build",
        batch_size=1024,
        shape={"width": 4096},
        dtype="bfloat16",
        kwargs={"layers": 4, "classes": 10},
    ),
    _of_rows(
        name="elementwise-4096",
        summary="the element-wise function at datacenter size",
        task=Task.FUNCTION,
        target="compilewatch.runner.workloads.elementwise:build",
        batch_size=16384,
        shape={"width": 4096},
        dtype="bfloat16",
    ),
)


def _encoder_training(name: str, summary: str, dtype: str = "float32", **kwargs: bool) -> WorkloadDefinition:
    return _of_tokens(
        name=name,
        summary=summary,
        task=Task.TRAINING,
        target="compilewatch.runner.workloads.encoder_training:build",
        batch_size=8,
        shape={"sequence_length": 32},
        dtype=dtype,
        kwargs={"width": 64, "heads": 4, "layers": 2, **kwargs},
    )


_UNLISTED = (
    replace(
        _ENCODER_512,
        name="encoder-512-int8",
        summary="encoder-512 with its linear layers in dynamic int8 by torchao",
        target="compilewatch.runner.workloads.quantised:build",
        packages=("torchao",),
    ),
    _encoder_training("encoder-train", "training step of the encoder with AdamW"),
    _encoder_training(
        "encoder-train-checkpointing",
        "the same with activation checkpointing: less memory, the forward pass twice",
        checkpointing=True,
    ),
    _encoder_training(
        "encoder-train-compiled-optimizer",
        "the same, where a compiled strategy compiles the optimizer as well",
        compile_optimizer=True,
    ),
    _encoder_training("encoder-train-bf16", "the same under autocast in bfloat16", dtype="bfloat16"),
    _encoder_training(
        "encoder-train-fp16", "the same under autocast in float16 with a GradScaler", dtype="float16"
    ),
    _of_tokens(
        name="flex-attention",
        summary="causal FlexAttention with a bias per head: one fused kernel where it is compiled",
        target="compilewatch.runner.workloads.operators:build_flex_attention",
        batch_size=2,
        shape={"sequence_length": 256},
        kwargs={"width": 64, "heads": 4},
        has_regions=False,
    ),
    _of_rows(
        name="custom-op",
        summary="element-wise operations around a torch.library.custom_op, which no kernel is fused across",
        task=Task.FUNCTION,
        target="compilewatch.runner.workloads.operators:build_custom_op",
        batch_size=512,
        shape={"width": 512},
    ),
    _of_rows(
        name="dropout-train",
        summary="training step with dropout: whether random numbers repeat from one seed",
        task=Task.TRAINING,
        target="compilewatch.runner.workloads.operators:build_dropout_training",
        batch_size=64,
        shape={"width": 256},
        kwargs={"classes": 10},
    ),
    WorkloadDefinition(
        name="unet",
        summary="a DDPM U-Net in plain torch, for where diffusers is not installed",
        target="compilewatch.runner.workloads.unet:build",
        batch_size=2,
        shape={"image_size": 64},
        item="image",
        kwargs={"channels": 64, "levels": 3},
    ),
)

WORKLOADS: dict[str, WorkloadDefinition] = {
    definition.name: definition for definition in (*_SMOKE, *_STANDARD, *_UNLISTED, *STREAMS)
}
