"""A builder that returns a data loader: its epoch is an iteration, in one order, and its waits are known."""

from __future__ import annotations

import time
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from compilewatch.runner.worker.step.loading import WorkloadError, build_workload
from compilewatch.runner.worker.step.messages import Workload
from compilewatch.runner.worker.step.steps import make_variant
from compilewatch.runner.worker.streams import waited_ns
from compilewatch.runner.workloads.built import TRAINING, Built

CPU = torch.device("cpu")


def built(model: nn.Module, loader: Any, *loss: Any, dtype: str = "float32", task: str = "training") -> Built:
    return build_workload(lambda: (model, loader, *loss), Workload("mine", task, dtype), CPU)


def of_tensors(samples: int = 20, **more: Any) -> DataLoader[Any]:
    numbers = torch.arange(float(samples))
    return DataLoader(TensorDataset(numbers.repeat(4, 1).T, numbers.long() % 3), 8, **more)


def test_an_epoch_has_the_same_order_every_time_and_the_target_apart() -> None:
    made = built(nn.Linear(4, 3), of_tensors(shuffle=True), nn.functional.cross_entropy)
    assert made.task == TRAINING
    assert made.stream is not None
    torch.manual_seed(5)
    expected = torch.rand(1)
    torch.manual_seed(5)
    epochs = [list(made.stream.batches()) for _ in range(2)]
    # Whoever draws beside it draws what they drew.
    assert torch.equal(torch.rand(1), expected)
    first, second = ([batch.inputs[0] for batch in epoch] for epoch in epochs)
    assert [len(each) for each in first] == [8, 8, 4]
    assert all(torch.equal(one, other) for one, other in zip(first, second, strict=True))
    order = torch.cat([each[:, 0] for each in first])
    assert sorted(order.tolist()) == list(range(20))
    assert order.tolist() != list(range(20))
    assert torch.equal(torch.cat([each.target for each in epochs[0]]), order.long() % 3)
    assert torch.equal(made.inputs[0], first[0])


def test_a_generator_of_its_own_is_begun_anew() -> None:
    made = built(
        nn.Linear(4, 3), of_tensors(shuffle=True, generator=torch.Generator()), nn.functional.cross_entropy
    )
    assert made.stream is not None
    first, second = (next(iter(made.stream.batches())).inputs[0] for _ in range(2))
    assert torch.equal(first, second)


def test_inference_takes_every_tensor_in_its_dtype() -> None:
    made = built(nn.Bilinear(4, 4, 1), of_pairs(), dtype="bfloat16", task="inference")
    assert made.stream is not None
    (batch,) = made.stream.batches()
    assert [each.dtype for each in batch.inputs] == [torch.bfloat16] * 2
    assert next(made.model_or_fn.parameters()).dtype == torch.bfloat16  # type: ignore[attr-defined]


def of_pairs() -> DataLoader[Any]:
    return DataLoader(TensorDataset(torch.ones(2, 4), torch.ones(2, 4)), 2)


class Named(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(4, 1)

    def forward(self, *, pixels: torch.Tensor) -> torch.Tensor:
        return self.inner(pixels)


def test_a_mapping_is_given_by_name() -> None:
    loader = DataLoader([{"pixels": torch.ones(4)} for _ in range(4)], 2)  # type: ignore[arg-type]
    made = built(Named(), loader, task="inference")
    assert make_variant(made).step().shape == (2, 1)


def test_an_empty_loader_is_a_sentence() -> None:
    with pytest.raises(WorkloadError, match="data loader has no batch"):
        built(nn.Linear(4, 3), of_tensors(4, drop_last=True), nn.functional.cross_entropy)


class Slow(TensorDataset):
    def __getitem__(self, index: Any) -> Any:
        time.sleep(0.005)
        return super().__getitem__(index)


def test_waiting_for_data_is_told_apart_from_the_steps() -> None:
    """Ten samples of 5 ms; the model takes next to nothing."""
    loader = DataLoader(Slow(torch.ones(10, 4), torch.zeros(10).long()), 5)
    variant = make_variant(built(nn.Linear(4, 3), loader, nn.functional.cross_entropy))
    variant.step()
    whole, waited = waited_ns(variant, CPU)
    assert 50e6 <= waited <= whole
    assert waited > 0.5 * whole
