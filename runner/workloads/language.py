"""BERT-base and GPT-2 of transformers, built from their configurations with random weights.

Losses are computed outside the models: given labels, GPT-2 logs a warning inside its forward pass, which
breaks the graph.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional
from transformers import BertConfig, BertForSequenceClassification, GPT2Config, GPT2LMHeadModel

from compilewatch.runner.workloads.built import INFERENCE, TRAINING, Built


def bert_base() -> Any:
    """109.48 million parameters; the defaults of BertConfig are BERT-base."""
    return BertForSequenceClassification(BertConfig())


def gpt2() -> Any:
    """124.44 million parameters; the defaults of GPT2Config are GPT-2 small. No key-value cache."""
    return GPT2LMHeadModel(GPT2Config(use_cache=False))


def _tokens(model: Any, batch_size: int, sequence_length: int, device: torch.device) -> torch.Tensor:
    return torch.randint(model.config.vocab_size, (batch_size, sequence_length), device=device)


def build_bert(*, batch_size: int, sequence_length: int, device: torch.device, dtype: torch.dtype) -> Built:
    """Inference on (batch_size, sequence_length) token ids."""
    with device:
        model = bert_base()
    model = model.to(dtype).eval()
    inputs = (_tokens(model, batch_size, sequence_length, device),)
    return Built(model_or_fn=model, inputs=inputs, task=INFERENCE, regions=("BertLayer",))


def build_bert_training(
    *, batch_size: int, sequence_length: int, device: torch.device, dtype: torch.dtype
) -> Built:
    """A fine-tuning step with AdamW: float32 weights, the forward pass under autocast in a 16-bit `dtype`.

    Dropout is off, so that eager and compiled compute the same.
    """
    with device:
        model = bert_base()
    model = model.train()
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    labels = torch.randint(model.config.num_labels, (batch_size,), device=device)
    return Built(
        model_or_fn=model,
        inputs=(_tokens(model, batch_size, sequence_length, device),),
        task=TRAINING,
        loss=lambda output: functional.cross_entropy(output.logits.float(), labels),
        optimizer=lambda parameters: torch.optim.AdamW(parameters, lr=1e-5),
        autocast_dtype=dtype if dtype.itemsize == 2 else None,
        regions=("BertLayer",),
    )


def build_gpt2(*, batch_size: int, sequence_length: int, device: torch.device, dtype: torch.dtype) -> Built:
    """Inference on (batch_size, sequence_length) token ids: logits of every position."""
    with device:
        model = gpt2()
    model = model.to(dtype).eval()
    inputs = (_tokens(model, batch_size, sequence_length, device),)
    return Built(model_or_fn=model, inputs=inputs, task=INFERENCE, regions=("GPT2Block",))
